//! Paths of files that a task names, as "Add src/login.rs": two tasks that name the same file do not run at once.

use super::tokens::is_cjk;

/// Endings by which a name without a slash is known as a file.
const ENDINGS: &[&str] = &[
    "c", "cc", "cfg", "cpp", "cs", "css", "csproj", "dart", "ex", "exs", "fs", "fsi", "fsproj", "go",
    "gradle", "h", "hpp", "html", "ini", "java", "js", "json", "jsx", "kt", "lock", "lua", "md", "mjs",
    "php", "proto", "py", "rb", "rs", "scala", "sh", "sql", "svelte", "swift", "tf", "toml", "ts", "tsx",
    "vue", "yml", "yaml", "txt",
];

/// Every path that `text` names, once, in the order of the text.
pub(super) fn paths(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        let is_code = at % 2 == 1;
        // Most prose has neither, which is soon told.
        if !part.bytes().any(|byte| matches!(byte, b'/' | b'.')) {
            continue;
        }
        let words = part.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '，' | '、' | '；'));
        for path in words.filter_map(|word| path(word, is_code)) {
            if !found.iter().any(|known| known == path) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// Every path that `text` names and does not only cite, as "per `contracts/api.md`" does: two tasks may read the same file at once.
pub(super) fn changed_paths(text: &str) -> Vec<String> {
    let mut found = paths(text);
    if found.is_empty() || !found.iter().any(|path| is_document(path)) {
        return found;
    }
    let lines: Vec<String> = text.lines().map(str::to_lowercase).collect();
    found.retain(|path| {
        if !is_document(path) {
            return true;
        }
        let path = path.to_lowercase();
        let mut places =
            lines.iter().flat_map(|line| line.match_indices(&path).map(move |(at, _)| (line, at)));
        places.any(|(line, at)| !is_cited(line, at, &path))
    });
    found
}

/// Whether a file is a text that tasks may cite. A program that is cited is often changed too.
fn is_document(path: &str) -> bool {
    const ENDINGS: [&str; 8] = ["md", "txt", "rst", "adoc", "yaml", "yml", "json", "proto"];
    path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// Words right before a file that is cited.
const BEFORE: [&str; 40] = [
    "per", "according to", "as defined in", "as specified in", "as described in", "as documented in",
    "defined in", "specified in", "described in", "based on", "following", "matching", "matches", "against",
    "ref", "refs", "reference", "cf.", "cf", "gemäß", "laut", "selon", "conformément à", "según", "conforme",
    "segundo", "de acordo com", "de acuerdo con", "согласно", "см.", "zgodnie z", "według", "wg", "根据",
    "根據", "按照", "依据", "参照", "参考", "参见",
];

const BEHIND: [&str; 10] =
    ["に従", "に基づ", "を参照", "参照", "に準拠", "에 따라", "에 따른", "참조", "참고", "를 참조"];

/// Labels of lines that list what to read.
const LABELS: [&str; 20] = [
    "spec reference", "spec references", "spec ref", "spec", "reference", "references", "refs", "see also",
    "referenz", "referenzen", "référence", "références", "referencia", "referencias", "referência",
    "referências", "参考", "参照", "참조", "ссылки",
];

/// Words that begin a list of what is cited.
const OPENING: [&str; 15] = [
    "per ", "according to ", "as defined in ", "as specified in ", "as described in ", "based on ", "gemäß ",
    "laut ", "selon ", "según ", "conforme ", "согласно ", "zgodnie z ", "według ", "根据",
];

/// Documents of spec-kit that tasks work from.
const SOURCES: [&str; 5] = ["research.md", "quickstart.md", "spec.md", "data-model.md", "plan.md"];

const DRESS: [char; 9] = ['`', '(', '（', '[', '*', '_', '"', '\'', ' '];

/// Whether the path at a place of a line in lower case is only read there.
fn is_cited(line: &str, at: usize, path: &str) -> bool {
    let label =
        line.trim_start_matches(['-', '*', '_', '>', ' ']).split_once([':', '：']).map(|(label, _)| label);
    if label.is_some_and(|label| LABELS.contains(&label.trim_matches(['*', '_', ' ']))) {
        return true;
    }
    let behind = line[at + path.len()..].trim_start_matches(['`', ')', '*', ' ', '）']);
    if BEHIND.iter().any(|words| behind.starts_with(words)) {
        return true;
    }
    let before = line[..at].trim_end_matches(DRESS);
    let ends = |words: &&str| {
        let rest = before.strip_suffix(*words);
        rest.is_some_and(|rest| words.starts_with(is_cjk) || !rest.ends_with(char::is_alphanumeric))
    };
    if BEFORE.iter().any(ends) {
        return true;
    }
    // "per FR-006 and `data-model.md`".
    let clause = before.rsplit([',', ';', '(', '（', '—', ':']).next().unwrap_or_default();
    let clause = clause.trim_start_matches(|c: char| !c.is_alphanumeric());
    if OPENING.iter().any(|words| clause.starts_with(words)) && !writes(clause) {
        return true;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    SOURCES.contains(&name) && !writes(line)
}

/// Whether a line in lower case says that something is written.
fn writes(line: &str) -> bool {
    const VERBS: [&str; 40] = [
        "updat", "writ", "creat", "edit", "add ", "document ", "extend", "generat", "revis", "rewrit",
        "append", "record", "fix ", "sync", "refresh", "aktualisier", "schreib", "erstell", "ergänz",
        "mettre à jour", "mise à jour", "rédig", "crée", "ajout", "actualiz", "atualiz", "escrib", "escrev",
        "crear", "criar", "обнов", "напис", "созда", "дополн", "aktualiz", "napis", "utwórz", "更新", "작성",
        "업데이트",
    ];
    const CJK: [&str; 8] = ["编写", "撰写", "创建", "新增", "作成", "追記", "編集", "修正"];
    VERBS.iter().chain(&CJK).any(|verb| line.contains(verb))
}

/// The path that a word is. In code a slash is enough; in prose there must be an ending too.
fn path(word: &str, is_code: bool) -> Option<&str> {
    if !word.contains(['/', '.']) {
        return None;
    }
    let word = word.trim_matches(|c: char| {
        matches!(c, '(' | ')' | '"' | '\'' | '*' | ':' | '。' | '!' | '?' | '）' | '（')
    });
    let word = word.strip_suffix('.').unwrap_or(word);
    let word = without_line_number(word.strip_prefix("./").unwrap_or(word));
    let is_shaped = !word.is_empty()
        && word.is_ascii()
        && !word.starts_with(['/', '-', '@', '$', '<', '#', '.'].as_slice()) | is_dotfile(word)
        && !word.contains("//")
        && !word
            .contains(['<', '>', '|', '=', '"', '\'', '\\', '&', '%', '?', '#', '…', '^', ';'].as_slice());
    let (folder, name) = word.rsplit_once('/').unwrap_or(("", word));
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    if folder.is_empty() && ending == Some("js") && is_product(name, is_code) {
        return None;
    }
    let is_path = match ending {
        Some(ending) if ENDINGS.contains(&ending) => true,
        Some(ending) => !folder.is_empty() && is_ending(ending) && !name.ends_with("()"),
        None => is_code && !folder.is_empty() && is_folder(word),
    };
    (is_shaped && is_path).then_some(word)
}

/// `Node.js` and the like are no files.
fn is_product(name: &str, is_code: bool) -> bool {
    const PRODUCTS: [&str; 22] = [
        "node.js", "next.js", "vue.js", "nuxt.js", "three.js", "d3.js", "express.js", "react.js", "chart.js",
        "ember.js", "alpine.js", "backbone.js", "moment.js", "day.js", "p5.js", "pdf.js", "nest.js",
        "socket.js", "discord.js", "ethers.js", "web3.js", "transformers.js",
    ];
    PRODUCTS.contains(&name.to_ascii_lowercase().as_str())
        || !is_code && name.starts_with(|c: char| c.is_ascii_uppercase())
}

fn is_dotfile(word: &str) -> bool {
    word.len() > 2 && word.starts_with('.') && word[1..].starts_with(|c: char| c.is_ascii_alphabetic())
}

fn is_ending(ending: &str) -> bool {
    (1..=6).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// `src/models` or `src/`; not `T008/T010` nor `and/or`.
fn is_folder(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'[' | b']'))
        && word.contains(|c: char| c.is_ascii_lowercase())
        && (word.matches('/').count() > 1 || word.ends_with('/'))
}

/// `src/a.rs:42` without its line.
fn without_line_number(word: &str) -> &str {
    match word.split_once(':') {
        Some((path, line)) if line.starts_with(|c: char| c.is_ascii_digit()) => path,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_from_prose() {
        for (text, wanted) in [
            (
                "Create src/models/user.py, and `tests/a_test.py`.",
                &["src/models/user.py", "tests/a_test.py"][..],
            ),
            ("in `src/app/[id]/route.ts` (see README.md)", &["src/app/[id]/route.ts", "README.md"]),
            ("fix src/a.rs:42 and ./b.rs", &["src/a.rs", "b.rs"]),
            ("`GET /api/users`, and/or T008/T010, `Version.tryParse`, e.g. http://a.b/c.js", &[]),
            ("`.github/workflows/ci.yml` in `src/lib/`", &[".github/workflows/ci.yml", "src/lib/"]),
            ("Node.js 20 with `Next.js` and `server.js`", &["server.js"]),
            ("v1.2.3 and 3.5 and U.S. a/b", &[]),
            ("在 `lib/config.ts` 实现", &["lib/config.ts"]),
        ] {
            assert_eq!(paths(text), wanted, "{text}");
        }
    }
}
