//! The state of a task in words, in the languages that people use: "Fertig", "en cours", "已完成".

use crate::plan::Mark;

/// Whether a label names the state of a task.
pub(super) fn is_status_label(label: &str) -> bool {
    const LABELS: [&str; 20] = [
        "status", "state", "stand", "zustand", "statut", "état", "estado", "situação", "stato", "stan",
        "статус", "состояние", "状态", "狀態", "状態", "進捗", "进度", "ステータス", "상태", "진행 상태",
    ];
    LABELS.contains(&label.trim_matches(['*', '_', ' ']).to_lowercase().as_str())
}

/// Parts of words for "not done yet". They are looked for first, because some contain a word for "done", as "unfinished" does.
const OPEN: &[&str] = &[
    "not ", "todo", "to do", "to-do", "pending", "planned", "incompl", "undone", "unfinished", "nicht",
    "offen", "ausstehend", "geplant", "unerledigt", "unvollst", "à faire", "inachev", "en attente", "prévu",
    "pendient", "por hacer", "pendente", "a fazer", "por fazer", "não", "inacabad", "未", "待", "计划",
    "予定", "미완", "예정", "대기", "не ", "незав", "невып", "неготов", "ожида", "заплан", "nie ", "nieuk",
    "niezak", "niegot", "do zrobienia", "oczekuj", "planowan",
];

/// Parts of words for work that has begun.
const PARTIAL: &[&str] = &[
    "progress",
    "partial",
    "🟡",
    "ongoing",
    "wip",
    "in arbeit",
    "teilweise",
    "en cours",
    "partiel",
    "en curso",
    "en progreso",
    "parcial",
    "em andamento",
    "em progresso",
    "em curso",
    "进行中",
    "進行中",
    "部分",
    "一部",
    "作業中",
    "진행",
    "부분",
    "в работе",
    "в процессе",
    "частич",
    "w trakcie",
    "w toku",
    "częściow",
];

/// Parts of words for work that is done.
const DONE: &[&str] = &[
    "✅", "✓", "✔", "☑", "done", "complete", "finished", "fertig", "erledigt", "abgeschlossen", "umgesetzt",
    "terminé", "achevé", "complété", "hecho", "hecha", "completad", "terminad", "finalizad", "feito",
    "feita", "concluíd", "concluid", "completo", "完成", "完了", "済", "완료", "готов", "выполнен", "заверш",
    "сделан", "gotow", "zrobion", "ukończ", "zakończ", "wykonan",
];

/// Parts of words for work that was dropped.
const SKIPPED: &[&str] = &[
    "skip", "dropped", "cancel", "übersprungen", "entfällt", "gestrichen", "annulé", "abandon", "omitid",
    "descartad", "取消", "跳过", "跳過", "中止", "スキップ", "취소", "отмен", "пропущ", "anulowan",
    "pominięt",
];

/// Parts of words for work that waits for something else.
const BLOCKED: &[&str] =
    &["blocked", "⛔", "blockiert", "bloqué", "bloquead", "阻塞", "ブロック", "차단", "заблок", "zablok"];

/// Words for "not done yet" that mean this only at the start.
const OPEN_STARTS: &[&str] = &["open", "no ", "non ", "pas ", "sin ", "noch "];

/// What a status in words means, in the languages that people use.
pub(super) fn status_mark(status: &str) -> Mark {
    let lower = status.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(OPEN) || OPEN_STARTS.iter().any(|start| lower.starts_with(start)) {
        Mark::Todo
    } else if says(PARTIAL) {
        Mark::Partial
    } else if says(DONE) || lower == "x" {
        Mark::Done
    } else if says(SKIPPED) {
        Mark::Skipped
    } else if says(BLOCKED) {
        Mark::Blocked
    } else {
        Mark::Todo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_recognised_in_every_language() {
        let of = |mark: Mark, words: &[&str]| {
            words.iter().for_each(|word| assert_eq!(status_mark(word), mark, "{word}"));
        };
        of(
            Mark::Done,
            &[
                "Done", "✅ Complete", "Fertig", "erledigt (PR #3)", "Terminé", "Hecho", "Completado",
                "Concluído", "已完成", "完了", "済", "완료", "Готово", "выполнено", "Gotowe", "Zakończone",
                "x",
            ],
        );
        of(
            Mark::Todo,
            &[
                "Not done",
                "incomplete",
                "Offen",
                "nicht fertig",
                "unerledigt",
                "À faire",
                "Pendiente",
                "no hecho",
                "Pendente",
                "未完成",
                "未完了",
                "待完成",
                "미완료",
                "Не готово",
                "не выполнено",
                "Niegotowe",
                "",
            ],
        );
        of(
            Mark::Partial,
            &[
                "In progress", "in Arbeit", "En cours", "En curso", "Em andamento", "进行中", "進行中",
                "진행 중", "В работе", "W trakcie",
            ],
        );
        of(
            Mark::Skipped,
            &["skipped", "entfällt", "annulé", "cancelado", "取消", "취소", "отменено", "anulowane"],
        );
        of(Mark::Blocked, &["Blocked", "blockiert", "bloqué", "bloqueado", "заблокировано", "zablokowane"]);
    }
}
