//! Finds the JSON object in an agent's reply, with or without a fence and other text around it.

use serde::{Deserialize, de::IgnoredAny};

/// An object with `nodes` counts as a tree. Whether it is valid is checked later.
#[derive(Deserialize)]
struct Tree {
    #[serde(rename = "nodes")]
    _nodes: IgnoredAny,
}

/// The longest tree in `text`. Without a complete one, everything between the first and the last brace, so that the
/// plan reader can say where it is wrong.
pub(super) fn find_object(text: &str) -> Option<&str> {
    let whole = trees(text).max_by_key(|object| object.len());
    whole.or_else(|| text.get(text.find('{')?..=text.rfind('}')?))
}

/// The trees of a text, from left to right.
fn trees(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = &rest[rest.find('{')?..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Tree>();
            if let Some(Ok(_)) = values.next() {
                let (object, behind) = rest.split_at(values.byte_offset());
                rest = behind;
                return Some(object);
            }
            rest = &rest[1..];
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_with_or_without_words_around_it() {
        let tree = r#"{"nodes": {"T1": {"name": "a } in ``` a text"}}}"#;
        for reply in [
            tree.to_owned(),
            format!("Here it is:\n\n```json\n{tree}\n```\nAnything else?"),
            format!("{{\"plan\": {tree}}}"),
            format!("By your schema {{\"type\": 1}}, with {{braces}}: {tree} and {{}}."),
        ] {
            assert_eq!(find_object(&reply), Some(tree), "{reply}");
        }
    }

    #[test]
    fn what_is_no_whole_object_is_left_to_the_reader() {
        let broken = r#"{"nodes": {"T1": {"id": "T1"} "T2": {"id": "T2", "name": "b"}}}"#;
        assert_eq!(find_object(&format!("so:\n{broken}\n")), Some(broken), "not only one of its nodes");
        assert_eq!(find_object("so: {\"nodes\": [1,}} there"), Some("{\"nodes\": [1,}}"));
        assert_eq!(find_object("I cannot do that"), None);
        assert_eq!(find_object("} {"), None);
        assert_eq!(find_object(""), None);
    }
}
