//! The words that say that something waits: "depends on", "after", "blocks", and the words that deny it.

use super::tokens::{Piece, Token, is_one_of, is_word_at, lower_word_at};

/// Where a sentence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClauseVoice {
    /// In a task, about itself.
    Task,
    /// In the heading of a phase or right below it, about that phase.
    Phase,
    /// In a section that lists dependencies.
    Section,
}

impl ClauseVoice {
    /// Whether a sentence without a subject is about what it is in.
    pub(super) fn is_own(self) -> bool {
        self != Self::Section
    }
}

/// How a keyword relates what comes before it to what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// The subject waits for the object.
    Waits,
    /// The object waits for the subject.
    Blocks,
    /// The object waits for what was named last.
    Then,
    /// The subject waits for what was named last; the keyword comes after it.
    Postfix,
    /// What was named last waits for the subject; the keyword comes after it.
    PostfixBlocks,
    /// The two have nothing to do with each other.
    Unrelated,
    /// One waits for the other, in the order of the file.
    Sequential,
}

/// How far after a keyword its object may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectReach {
    Near,
    Far,
}

/// A keyword of a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyword {
    pub(super) sense: Sense,
    pub(super) reach: ObjectReach,
    /// Where it ends.
    pub(super) end: usize,
    /// Whether a sentence with it surely speaks of order, also where its object cannot be read.
    pub(super) is_certain: bool,
}

/// Words that say what follows them if a colon comes after them: "Dependencies: T001".
const LABELS: [&str; 41] = [
    "dependencies",
    "dependency",
    "depends",
    "deps",
    "preconditions",
    "precondition",
    "prerequisites",
    "prerequisite",
    "dépendances",
    "dependencias",
    "dependências",
    "dipendenze",
    "abhängigkeiten",
    "zależności",
    "зависимости",
    "依赖关系",
    "依賴關係",
    "依赖项",
    "依存関係",
    "前置",
    "依赖任务",
    "依賴任務",
    "前置任务",
    "前置任務",
    "의존성",
    "의존",
    "선행",
    "dep",
    "prereq",
    "prereqs",
    "voraussetzung",
    "voraussetzungen",
    "requisitos",
    "previos",
    "requis",
    "bağımlılık",
    "bağımlılıklar",
    "依存",
    "前提",
    "前置条件",
    "前置條件",
];

/// Whether a label is a word that says what is waited for, as "Prerequisites". Alone, "Requisitos" are requirements.
pub(super) fn is_needs_label(label: &str) -> bool {
    let label = label.trim_matches(['*', '_', '`', ' ']).to_lowercase();
    LABELS.contains(&label.as_str()) && !matches!(label.as_str(), "requisitos" | "requis" | "previos")
}

/// The longest word of [`keyword_at`] in bytes; longer ones need not be looked at.
const LONGEST: usize = 22;

/// Words before "before" that tell that nothing has to wait.
const EVEN: [&str; 4] = ["even", "mesmo", "incluso", "sogar"];

/// Words for what was named before.
const BACK_REFERENCES: [&str; 8] = ["it", "them", "this", "these", "él", "ella", "ellos", "ellas"];

/// The keyword at a position.
pub(super) fn keyword_at(clause: &[Token<'_>], at: usize, voice: ClauseVoice) -> Option<Keyword> {
    let Piece::Word(word) = clause[at].what else { return None };
    if word.len() > LONGEST {
        return None;
    }
    let mut buffer = [0; LONGEST];
    let lowered: String;
    let lower: &str = if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        word
    } else if word.is_ascii() {
        let lower = &mut buffer[..word.len()];
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        std::str::from_utf8(lower).unwrap_or_default()
    } else if word.starts_with(char::is_uppercase) {
        lowered = word.to_lowercase();
        &lowered
    } else {
        word
    };
    let follows = |wanted: &[&str]| is_word_at(clause, at + 1, wanted);
    let is_unclear = match lower {
        "until" => !is_until(clause, at, voice),
        "when" => !is_when(clause, at),
        "follow" | "following" => !clause.get(at + 1).is_some_and(Token::is_name),
        "requisitos" => !is_prerequisite(clause, at),
        _ => false,
    };
    if is_unclear {
        return None;
    }
    let is_label = clause.get(at + 1).is_some_and(|next| next.what == Piece::Colon);
    let next = NextToken { is_label, is_name: clause.get(at + 1).is_some_and(Token::is_name) };
    let (sense, reach, len, is_certain) = words(lower, voice, &follows, next)?;
    // "US2 must not start before US1 is done".
    let sense = match sense {
        Sense::Blocks if lower == "before" && is_forbidden(clause, at) => Sense::Waits,
        // "US2 works even before US1 is done".
        Sense::Blocks if at > 0 && is_word_at(clause, at - 1, &EVEN) => Sense::Unrelated,
        sense => sense,
    };
    // "T001 and T002 can run in parallel with each other" says how they run.
    if sense == Sense::Unrelated && is_word_at(clause, at + len, &["each"]) {
        return None;
    }
    // "Services (T001) before the pages that depend on them (T002-T004)" says the same twice.
    let is_relative = at > 0 && is_word_at(clause, at - 1, &["that", "which", "que"]);
    if sense == Sense::Waits && is_relative && is_word_at(clause, at + len, &BACK_REFERENCES) {
        return None;
    }
    Some(Keyword { sense, reach, end: at + len, is_certain })
}

/// What comes right after a word, if it is no word.
#[derive(Debug, Clone, Copy)]
struct NextToken {
    /// Whether it is a colon.
    is_label: bool,
    is_name: bool,
}

/// What a word means, given the word after it: sense, reach, number of words, and whether it is certain.
#[expect(clippy::too_many_lines, reason = "a table of words")]
fn words(
    word: &str,
    voice: ClauseVoice,
    follows: &dyn Fn(&[&str]) -> bool,
    NextToken { is_label, is_name: is_named }: NextToken,
) -> Option<(Sense, ObjectReach, usize, bool)> {
    use ObjectReach::{Far, Near};
    use Sense::{Blocks, Postfix, PostfixBlocks, Sequential, Then, Unrelated, Waits};
    // A task's own text says "after" and "needs" about much else; a dependency section does not.
    let is_section = voice == ClauseVoice::Section;
    let reach = if is_section { Far } else { Near };
    Some(match word {
        label if is_label && LABELS.contains(&label) => (Waits, Near, 2, false),
        "depends" | "depend" | "dependent" | "depending" if follows(&["on", "upon"]) => (Waits, Far, 2, true),
        "depends" | "depend" if follows(&["only"]) => (Waits, Far, 2, true),
        "depends" if is_named => (Waits, Near, 1, true),
        "depends-on" | "blocked-by" => (Waits, Far, 1, true),
        "builds" | "build" | "relies" | "rely" if is_section && follows(&["on", "upon"]) => {
            (Waits, Near, 2, false)
        }
        "sequential" | "sequentially" if follows(&["with"]) => (Sequential, Near, 2, false),
        "gated" if follows(&["by", "on", "behind"]) => (Waits, Near, 2, false),
        "depende" | "dependen" | "dépend" | "dépendent"
            if follows(&["de", "del", "do", "da", "des", "du", "d"]) =>
        {
            (Waits, Far, 2, true)
        }
        "zależy" | "zależą" if follows(&["od"]) => (Waits, Far, 2, true),
        "зависит" | "зависят" if follows(&["от"]) => (Waits, Far, 2, true),
        "залежить" | "залежать" if follows(&["від"]) => (Waits, Far, 2, true),
        // "Primero US1, después US2", but "US2 después de US1".
        "después" | "depois" if is_section && !follows(&["de", "del", "da", "do", "das", "dos"]) => {
            (Then, Near, 1, false)
        }
        "после" | "після" | "después" | "depois" | "após" | "nach" | "dopo" | "après" | "tras" => {
            (Waits, reach, 1, false)
        }
        "po" if is_section => (Waits, reach, 1, false),
        "una" | "uma" | "une" if is_section && follows(&["vez", "fois"]) => (Waits, reach, 2, false),
        "hängt" | "hängen" | "abhängig" if follows(&["von"]) => (Waits, Far, 2, true),
        "wartet" | "warten" | "baut" | "bauen" if is_section && follows(&["auf"]) => (Waits, Near, 2, false),
        "precisa" | "precisam" if is_section && follows(&["de", "da", "do"]) => (Waits, Near, 2, false),
        "esperar" | "espera" if is_section && follows(&["a", "por"]) => (Waits, Near, 2, false),
        "requiere" | "requieren" | "necesita" | "necesitan" | "requer" | "requerem" | "aguarda"
        | "aguardam" | "nécessite" | "nécessitent" | "requiert" | "requièrent" | "benötigt" | "benötigen"
        | "braucht" | "brauchen" | "erfordert" | "erfordern" | "setzt" | "требует" | "требуют" | "ждёт"
        | "ждет" | "ждут" | "需要" | "等待" | "基于" | "基於" => (Waits, Near, 1, false),
        "antes" if is_section && follows(&["de", "del", "da", "do", "das", "dos"]) => {
            (Blocks, Near, 2, false)
        }
        "avant" | "vor" | "перед" if is_section => (Blocks, Near, 1, false),
        "luego" | "puis" | "ensuite" | "dann" | "danach" | "затем" | "потом" | "然后" | "然後"
            if is_section =>
        {
            (Then, Near, 1, false)
        }
        "independiente" | "independente" | "indépendant" | "indépendante"
            if follows(&["de", "do", "da", "del"]) =>
        {
            (Unrelated, Near, 2, false)
        }
        "независима" | "независим" | "независимо" | "независимы" if follows(&["от"]) => {
            (Unrelated, Near, 2, false)
        }
        "bloquea" | "bloquean" if follows(&["a"]) => (Blocks, Near, 2, false),
        "blockiert" | "blockieren" | "blokuje" | "blokują" | "блокирует" | "блокируют" | "блокує"
        | "bloqueia" | "bloqueiam" | "bloquea" | "bloquean" => (Blocks, Near, 1, false),
        "相依於" | "相依于" => (Waits, Far, 1, true),
        "blocked" if follows(&["by", "on"]) => (Waits, Far, 2, true),
        "waits" | "wait" | "waiting" if follows(&["for", "on"]) => (Waits, Far, 2, true),
        // "edited once per story" counts.
        "once" if follows(&["per", "each", "every"]) => return None,
        "after" | "once" => (Waits, reach, 1, false),
        "deferred" | "postponed" if follows(&["until"]) => (Waits, Near, 2, true),
        "when" => (Waits, Near, 1, false),
        "until" | "follow" | "following" if voice != ClauseVoice::Task => (Waits, Near, 1, false),
        "soon" if is_section && follows(&["as"]) => (Waits, Near, 2, false),
        "upon" if is_section && follows(&["completion", "completing"]) => (Waits, Near, 2, false),
        // "T021, T022 need sequential work".
        "requires" | "require" | "needs" | "need" if follows(&["sequential", "sequentially"]) => return None,
        "requires" | "require" | "needs" | "need" | "follows" => (Waits, Near, 1, false),
        // In a task, "包依赖问题" is about packages.
        // "app.go 依赖的模块" are the modules that it uses.
        "依赖" | "依賴" if follows(&["的"]) => return None,
        "依赖" | "依赖于" | "依賴" | "依賴於" => (Waits, reach, 1, true),
        "依存" => (Waits, Near, 1, false),
        "に依存" | "之后" | "之後" | "完成后" | "完成後" | "完成之后" | "完了後" | "の後" | "后" | "後"
        | "후" | "이후" | "의존" => (Postfix, Near, 1, false),
        "が必要" | "を待" | "필요" | "다음" | "sonra" | "bağımlı" | "bağımlıdır" | "bağlı" | "bağlıdır"
        | "gerektirir" | "gerekli" => (Postfix, Near, 1, false),
        "前置條件" | "前置条件" | "先決條件" | "先决条件" | "前提" | "之前" | "より前" | "をブロック"
        | "önce" | "engeller"
            if is_section =>
        {
            (PostfixBlocks, Near, 1, false)
        }
        "dependency" | "dependencies" if follows(&["on", "upon"]) => (Waits, Near, 2, false),
        "선행" if is_section => (PostfixBlocks, Near, 1, false),
        "required" | "needed" if follows(&["by"]) => (Blocks, Near, 2, false),
        "required" | "needed" if is_section && follows(&["for"]) => (Blocks, Near, 2, false),
        "unlocks" | "unlock" | "enables" | "enable" | "feeds" if is_section => (Blocks, Near, 1, false),
        "prior" if is_section && follows(&["to"]) => (Blocks, reach, 2, false),
        "prerequisite" | "prerequisites" if follows(&["for", "of"]) => (Blocks, Far, 2, false),
        "blocks" | "block" | "unblocks" | "gates" | "bloque" | "阻塞" => (Blocks, Near, 1, false),
        "before" | "precedes" | "precede" if is_section => (Blocks, reach, 1, false),
        "then" if is_section => (Then, Near, 1, false),
        "finally" | "lastly" if is_section && is_named => (Then, Near, 1, false),
        "parallel" if follows(&["with", "to", "zu", "zur", "zum", "mit"]) => (Unrelated, Near, 2, false),
        "parallèle" if follows(&["avec", "de", "des"]) => (Unrelated, Near, 2, false),
        "paralelo" if follows(&["com", "con", "a", "ao"]) => (Unrelated, Near, 2, false),
        "independent" | "independently" if follows(&["of", "from"]) => (Unrelated, Near, 2, false),
        "while" if is_section => (Unrelated, Near, 1, false),
        "alongside" | "独立于" | "獨立於" | "不依赖" | "不依賴" | "不相依" => {
            (Unrelated, Near, 1, false)
        }
        "concurrently" | "concurrent" | "together" | "simultaneously" | "side" | "parallelize"
        | "parallelise" | "parallelized" | "parallelised"
            if follows(&["with"]) =>
        {
            (Unrelated, Near, 2, false)
        }
        "time" if follows(&["as"]) => (Unrelated, Near, 2, false),
        _ => return None,
    })
}

/// Whether one of some words is among tokens.
pub(super) fn has_any(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.iter().any(|token| token.is_word(words))
}

/// The "until" of "do not start US3 until T006 is done" and "US3 is blocked until T006 is done".
fn is_until(clause: &[Token<'_>], at: usize, voice: ClauseVoice) -> bool {
    const SHORTLY: usize = 6;
    const STOPS: [&str; 8] = ["not", "don", "never", "cannot", "t", "blocked", "wait", "waits"];
    let near = &clause[at.saturating_sub(SHORTLY)..at];
    (voice == ClauseVoice::Phase || near.iter().any(Token::is_name)) && has_any(near, &STOPS)
}

/// The "requisitos" of "Pré-requisitos: 1.1" and "Requisitos: T001". In "Requisitos: 2.4, 8.1" the numbers are those of requirements,
/// which are no tasks.
fn is_prerequisite(clause: &[Token<'_>], at: usize) -> bool {
    let is_lettered = |token: &Token<'_>| matches!(token.what, Piece::Id(id) if id.starts_with(|c: char| c.is_ascii_alphabetic()));
    at > 0 && clause[at - 1].what == Piece::Dash || clause.get(at + 2).is_some_and(is_lettered)
}

/// The "when" of "US2 can start when US1 is complete".
fn is_when(clause: &[Token<'_>], at: usize) -> bool {
    const SHORTLY: usize = 8;
    const DONE: [&str; 8] =
        ["complete", "completed", "completes", "done", "finished", "finishes", "ready", "merged"];
    let near = &clause[at + 1..clause.len().min(at + 1 + SHORTLY)];
    near.iter().take(3).any(Token::is_name) && has_any(near, &DONE)
}

/// Whether something is not allowed before a position: "must not start before". "need not be done before" allows it.
fn is_forbidden(clause: &[Token<'_>], at: usize) -> bool {
    const SHORTLY: usize = 5;
    let near = &clause[at.saturating_sub(SHORTLY)..at];
    has_any(near, &["not", "cannot", "never", "t", "don"])
        && has_any(near, &["start", "begin", "started", "run", "proceed", "done", "worked"])
        && !has_any(near, &["need", "needs", "required", "necessary", "have", "has"])
}

/// "US4 can be done before US3 if needed": what may come first need not.
pub(super) fn is_permitted_before(clause: &[Token<'_>], at: usize) -> bool {
    const SHORTLY: usize = 4;
    let near = &clause[at.saturating_sub(SHORTLY)..at];
    // "T001 and T002 can run in parallel before T003" permits only the parallel work.
    let is_can = has_any(near, &["can", "may", "could"]) && !has_any(near, &["not", "only", "must"]);
    is_word_at(clause, at, &["before"]) && is_can && !near.iter().any(is_parallel_token)
}

/// Whether "not", "no" or "without" shortly before a keyword turns it round.
pub(super) fn is_denied(clause: &[Token<'_>], at: usize) -> bool {
    const SHORTLY: usize = 3;
    let is_before = is_word_at(clause, at, &["before"]) && is_forbidden(clause, at);
    if is_word_at(clause, at, &["until"]) || is_before {
        return false;
    }
    // In "Tests: no | Depends on: T001" the bar parts two statements.
    let is_apart = |token: &&Token<'_>| matches!(token.what, Piece::Other | Piece::Colon);
    let mut before = clause[at.saturating_sub(SHORTLY)..at].iter().rev().take_while(|token| !is_apart(token));
    before.any(|token| {
        // Chinese writes no spaces: `無其他故事` is one word.
        matches!(token.what, Piece::Word(word) if word.starts_with(['无', '無', '不', '没', '沒']) || matches!(
            word.to_ascii_lowercase().as_str(),
            "not" | "no" | "without" | "never" | "doesn" | "don" | "doesnt" | "dont" | "cannot" | "nothing" | "neither" | "nor" | "无" | "不" | "無" | "none" | "nie" | "pas" | "ne" | "aucune" | "não" | "не" | "nicht" | "không" | "tidak" | "niet" | "ikke" | "inte"
        ))
    })
}

/// "US3 can start after Phase 2, but final verification needs US1": only a part of it waits, and which task that is
/// cannot be told.
pub(super) fn is_of_some_part(clause: &[Token<'_>], at: usize) -> bool {
    /// Words that may come between the story or phase that a sentence is about and "needs".
    const BETWEEN: [&str; 20] = [
        "also", "and", "but", "it", "this", "that", "which", "still", "only", "story", "phase", "task",
        "then", "first", "stories", "phases", "tasks", "work", "implementation", "really",
    ];
    let word = |at: usize| lower_word_at(clause, at);
    let is_need = matches!(word(at).as_str(), "need" | "needs" | "require" | "requires");
    let before = at.checked_sub(1).map(word).unwrap_or_default();
    is_need
        && before.chars().all(char::is_alphabetic)
        && !before.is_empty()
        && !BETWEEN.contains(&before.as_str())
}

/// "Best done after US1", "ideally once T004 is in": a wish, which gives way to what is said firmly.
/// Only some words before the keyword are looked at.
pub(super) fn is_wish(clause: &[Token<'_>], at: usize, words: usize) -> bool {
    clause[at.saturating_sub(words)..at].iter().any(|token| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "best" | "ideally" | "preferably" | "preferred" | "optionally" | "easier" | "simpler" | "nicer" | "最好"
        ) || ["推荐", "推薦", "建议", "建議"].iter().any(|wish| word.contains(wish)))
    })
}

/// Whether a word says that things run at the same time, in the languages that people use.
pub(super) fn is_parallel_word(word: &str) -> bool {
    const STEMS: [&str; 11] = [
        "parallel",
        "paralel",
        "parallèl",
        "równoleg",
        "simultan",
        "simultán",
        "concurren",
        "gleichzeitig",
        "параллел",
        "паралел",
        "одновремен",
    ];
    const CJK: [&str; 8] = ["并行", "並行", "並列", "平行", "同时", "同時", "병렬", "동시"];
    if word.is_ascii() {
        let begins_with =
            |stem: &&str| word.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem));
        return STEMS.iter().any(begins_with);
    }
    let lower = word.to_lowercase();
    STEMS.iter().any(|stem| lower.starts_with(stem)) || CJK.iter().any(|known| lower.contains(known))
}

/// Whether a token is a word that says that things run at the same time.
pub(super) fn is_parallel_token(token: &Token<'_>) -> bool {
    token.word().is_some_and(is_parallel_word)
}

/// Whether a word says that things have nothing to do with each other, in the languages that people use.
pub(super) fn is_independent_word(word: &str) -> bool {
    const STEMS: [&str; 7] = [
        "independiente", "independente", "indépendant", "indipendent", "unabhängig", "niezależn", "независим",
    ];
    let lower = word.to_lowercase();
    lower == "independent" || STEMS.iter().any(|stem| lower.starts_with(stem))
}

/// Whether a word says that nothing is waited for, in the languages that people use.
pub(super) fn is_none_word(word: &str) -> bool {
    const NONE: [&str; 21] = [
        "none", "nothing", "n", "no", "无", "無", "無し", "なし", "없음", "aucune", "aucun", "ninguna",
        "ninguno", "nenhuma", "nenhum", "keine", "nessuna", "brak", "нет", "немає", "yok",
    ];
    NONE.contains(&word.to_lowercase().as_str())
}

/// Words that may come between a keyword and its object.
pub(super) fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 24] = [
        "task", "tasks", "both", "all", "of", "completing", "completion", "on", "phase", "phases", "the",
        "from", "user", "story", "stories", "only", "either", "完成", "any", "each", "first", "on:", "la",
        "les",
    ];
    is_one_of(word, &FILLERS)
}
