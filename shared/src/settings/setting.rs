//! The definition of a configuration key.

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// A whole number of at least 1.
    Positive,
    /// A number that may have a fraction.
    Amount,
    /// True or false.
    Switch,
    /// A list of texts.
    Words,
    /// A whole number of at least 1, or `auto`.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An age.
    Age,
    /// A list of folders, absolute or in the home directory (`~/`).
    Folders,
    /// One pathspec or a list of them. Not all of them may be exclusions, which would mean everything else.
    Pathspecs,
}

impl ValueKind {
    /// Whether a value has several elements.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Words | Self::Folders | Self::Pathspecs)
    }
}

/// A configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key in files; `git config` puts `arborist.` before it. `*` stands for one name.
    pub key: &'static str,
    /// The environment variable; `None` for keys with a `*`.
    pub variable: Option<&'static str>,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The same in words.
    pub expected: &'static str,
    /// The default, in words.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

impl Setting {
    /// Whether `key` is this one.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        is_key(self.key, key)
    }
}

/// Whether a pattern, in which `*` stands for one name, is this key.
pub(super) fn is_key(pattern: &str, key: &str) -> bool {
    let (mut own, mut given) = (pattern.split('.'), key.split('.'));
    loop {
        match (own.next(), given.next()) {
            (None, None) => return true,
            (Some("*"), Some(name)) if !name.is_empty() => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SETTINGS;

    #[test]
    fn a_star_stands_for_one_name() {
        let key = |key: &str| SETTINGS.iter().find(|setting| setting.is(key)).map(|setting| setting.key);
        assert_eq!(key("steps.review.runner"), Some("steps.*.runner"));
        assert_eq!(key("runners.robot.env.MODE"), Some("runners.*.env.*"));
        assert_eq!(key("steps.runner"), None);
        assert_eq!(key("tree"), Some("tree"));
        assert_eq!(key("tree.x"), None);
    }
}
