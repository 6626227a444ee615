//! Fills the placeholders of an engine's commands and manifests. Commands are run by `sh -c`, so their values are quoted.

/// A placeholder that no command of an engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownPlaceholder(pub(super) String);

/// Fills `{name}` with the value of `name`, which has to be quoted already. `{{name}}` stands for `{name}`. What is not a
/// lower-case word in braces, and what follows a `$`, belongs to the shell and stays.
pub(super) fn fill(
    template: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, behind) = rest.split_at(at);
        filled.push_str(before);
        let is_doubled = behind.starts_with("{{");
        let inner = behind.trim_start_matches('{');
        let length = inner.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(inner.len());
        let (name, end) = inner.split_at(length);
        let opened = behind.len() - inner.len();
        if is_doubled && opened == 2 && !name.is_empty() && end.starts_with("}}") {
            filled.push_str(&format!("{{{name}}}"));
            rest = &end[2..];
        } else if opened == 1 && !before.ends_with('$') && !name.is_empty() && end.starts_with('}') {
            let value = value(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?;
            filled.push_str(&value);
            rest = &end[1..];
        } else {
            filled.push_str(&behind[..opened]);
            rest = inner;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::shell_word;

    #[test]
    fn values_are_quoted_and_what_belongs_to_the_shell_stays() {
        let value = |name: &str| match name {
            "job" => Some(shell_word("12_3")),
            "place" => Some(shell_word("a b'; rm -rf x")),
            _ => None,
        };
        for (template, expected) in [
            ("x {job}", "x 12_3"),
            ("x {place}", r"x 'a b'\''; rm -rf x'"),
            ("x ${job} {.status.phase} {HOME}", "x ${job} {.status.phase} {HOME}"),
            ("awk '{{print}}'", "awk '{print}'"),
            ("a{job}{job}b{", "a12_312_3b{"),
            ("{{{job}", "{{{job}"),
        ] {
            assert_eq!(fill(template, value).unwrap(), expected, "{template}");
        }
        assert_eq!(fill("{jbo}", value), Err(UnknownPlaceholder("jbo".into())));
    }
}
