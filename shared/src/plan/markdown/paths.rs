//! Paths of files that a task names, for the forecast of conflicts.

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
        "node.js",
        "next.js",
        "vue.js",
        "nuxt.js",
        "three.js",
        "d3.js",
        "express.js",
        "react.js",
        "chart.js",
        "ember.js",
        "alpine.js",
        "backbone.js",
        "moment.js",
        "day.js",
        "p5.js",
        "pdf.js",
        "nest.js",
        "socket.js",
        "discord.js",
        "ethers.js",
        "web3.js",
        "transformers.js",
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
    fn paths_are_told_from_prose() {
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
