//! Names that a newcomer can look up: each public type has its own, and none is a metaphor.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::LazyLock,
};

use regex::Regex;

use crate::architecture::sources;

/// Words that once named parts of the program. What they stood for has plain names now.
const RETIRED: [&str; 26] = [
    "annex", "attendance", "brush", "bulletin", "chronicle", "clerk", "compost", "courier", "crew", "drift",
    "errand", "ferry", "guest", "happening", "nursery", "orchard", "outlook", "recollection", "scribe",
    "sentry", "shelf", "taken_up", "van", "workbench", "workshop", "yard",
];

fn all_sources() -> Vec<(PathBuf, String)> {
    ["shared", "bins", "tests", "benches"].into_iter().flat_map(sources).collect()
}

#[test]
fn a_public_type_name_exists_once() {
    let public = Regex::new(r"(?m)^\s*pub(?:\([^)]*\))? (?:struct|enum|trait|type) (\w+)").unwrap();
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (path, text) in ["shared/src", "bins"].into_iter().flat_map(sources) {
        for name in public.captures_iter(&text) {
            places.entry(name[1].to_owned()).or_default().push(path.clone());
        }
    }
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "public types with the same name: {places:#?}");
}

#[test]
fn no_name_is_a_metaphor() {
    let retired = Regex::new(&format!("_(?:{})s?_", RETIRED.join("|"))).unwrap();
    let mut found = Vec::new();
    for (path, text) in all_sources() {
        if path.ends_with("tests/cli/names.rs") {
            continue;
        }
        for name in names(&text) {
            let words = words(name);
            // The name of a test is a sentence, in which every word has its plain meaning.
            if words.matches('_').count() > 6 {
                continue;
            }
            if let Some(retired) = retired.find(&words) {
                found.push(format!("{}: '{name}' ({})", path.display(), retired.as_str()));
            }
        }
    }
    assert!(found.is_empty(), "names that a newcomer cannot look up:\n{}", found.join("\n"));
}

/// The identifiers of a source, without comments and texts.
fn names(text: &str) -> BTreeSet<&str> {
    static TOKEN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"//[^\n]*|(?s:"(?:\\.|[^"\\])*")|\b[A-Za-z_]\w*"#).unwrap());
    let tokens = TOKEN.find_iter(text).map(|token| token.as_str());
    tokens.filter(|token| !token.starts_with(['/', '"'])).collect()
}

/// `SessionWriter` and `session_writer` as `_session_writer_`.
fn words(name: &str) -> String {
    let mut words = String::from("_");
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words + "_"
}

#[test]
fn the_architecture_page_names_only_paths_and_items_that_exist() {
    let tour = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let path = Regex::new(r"`((?:shared|bins|tests|benches|fuzz|hooks|man)/[\w/.]*)`").unwrap();
    for found in path.captures_iter(&tour) {
        assert!(PathBuf::from(&found[1]).exists(), "ARCHITECTURE.md names '{}'", &found[1]);
    }
    let item = Regex::new(r"`(\w+)::(\w+)`").unwrap();
    for found in item.captures_iter(&tour) {
        let (module, name) = (&found[1], &found[2]);
        let folders = [format!("shared/src/{module}"), format!("bins/{module}")];
        let texts =
            folders.iter().filter(|folder| PathBuf::from(folder).is_dir()).flat_map(|folder| sources(folder));
        let file = fs::read_to_string(format!("shared/src/{module}.rs")).unwrap_or_default();
        let defined = Regex::new(&format!(r"\b(?:mod|struct|enum|trait|fn|type) {name}\b")).unwrap();
        let is_there = defined.is_match(&file) || texts.into_iter().any(|(_, text)| defined.is_match(&text));
        assert!(is_there, "ARCHITECTURE.md names '{module}::{name}'");
    }
}
