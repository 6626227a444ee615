//! "Did you mean": the known word that is closest to a mistyped one.

/// The candidate with the fewest edits from `word`, if it is close enough and no other one is as close: `T009` could be
/// any of `T001` to `T004`.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 4);
    let mut close: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| !has_other_number(&folded, &candidate.to_lowercase()))
        .map(|candidate| (edits(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= limit || (folded.len() >= 3 && candidate.to_lowercase().starts_with(&folded))
        })
        .collect();
    close.sort_by_key(|(distance, _)| *distance);
    close.dedup();
    match close.as_slice() {
        [(first, _), (second, _), ..] if first == second => None,
        [(_, candidate), ..] => Some(candidate),
        [] => None,
    }
}

/// Whether two words differ only in their numbers, such as `T009` and `T001`. Those are two names, not one and a slip: only
/// zeros at the start of a number are.
fn has_other_number(a: &str, b: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let letters =
        |word: &str| word.split(is_digit).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let numbers = |word: &str| -> Vec<String> {
        let runs = word.split(|c: char| !is_digit(c)).filter(|run| !run.is_empty());
        runs.map(|run| run.trim_start_matches('0').to_owned()).collect()
    };
    letters(a) == letters(b) && numbers(a).len() == numbers(b).len() && numbers(a) != numbers(b)
}

/// The candidate that a key of a file probably means: equal except for case, `_` and `-`, or one or two typing errors.
/// Stricter than [`nearest`], because files may have keys that are not ours.
pub fn misspelt<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace(['_', '-'], "");
    let typed = plain(word);
    let limit = (typed.chars().count() / 3).min(2);
    candidates
        .into_iter()
        .map(|candidate| (edits(&typed, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance == 0 || (*distance <= limit && typed.len() > 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether a word differs from another one by one typing error.
#[must_use]
pub fn is_mistyped(word: &str, meant: &str) -> bool {
    edits(word, meant) <= 1
}

/// The edit distance, in which two swapped letters count once. The limit bounds the cost of a hostile word.
fn edits(a: &str, b: &str) -> usize {
    let begin = |word: &str| word.chars().take(80).collect::<String>();
    strsim::osa_distance(&begin(a), &begin(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_proposed_and_a_far_one_is_not() {
        let verbs = ["state", "trailers", "hooks", "garden", "gardener"];
        for (typed, meant) in [
            ("stat", Some("state")),
            ("sttae", Some("state")),
            ("Trailer", Some("trailers")),
            ("hook", Some("hooks")),
            ("gardner", Some("gardener")),
            ("commit", None),
            ("x", None),
        ] {
            assert_eq!(nearest(typed, verbs), meant, "{typed}");
        }
    }

    #[test]
    fn no_word_is_proposed_if_several_are_equally_close() {
        let tasks = ["T001", "T002", "T003"];
        assert_eq!(nearest("T009", tasks), None);
        assert_eq!(nearest("T01", tasks), Some("T001"));
        assert_eq!(nearest("T0003", tasks), Some("T003"));
        assert_eq!(nearest("T009", ["T001"]), None);
        assert_eq!(nearest("T10", ["T1"]), None);
        assert_eq!(nearest("phase2", ["phase-2", "phase-1"]), Some("phase-2"));
    }

    #[test]
    fn a_key_is_misspelt_only_if_it_is_very_close() {
        let keys = ["depends_on", "testStrategy", "title", "id", "status", "tags"];
        for (typed, meant) in [
            ("dependson", Some("depends_on")),
            ("dependsOn", Some("depends_on")),
            ("Depend-on", Some("depends_on")),
            ("test_strategy", Some("testStrategy")),
            ("tittle", Some("title")),
            ("tag", None),
            ("test", None),
            ("state", None),
            ("uid", None),
            ("priority", None),
        ] {
            assert_eq!(misspelt(typed, keys), meant, "{typed}");
        }
    }
}
