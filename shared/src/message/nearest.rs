//! "Did you mean": the known word that is closest to a mistyped one.

/// The candidate with the fewest edits from `word`, if it is close enough to be worth saying.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (edits(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= limit || (folded.len() >= 3 && candidate.to_lowercase().starts_with(&folded))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether a word is another but for one slip.
#[must_use]
pub fn is_mistyped(word: &str, meant: &str) -> bool {
    edits(word, meant) <= 1
}

/// Edit distance in which two swapped neighbours count once.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(80).collect();
    let b: Vec<char> = b.chars().take(80).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
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
}
