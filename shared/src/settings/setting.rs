//! The definition of a configuration key, of the structs that hold the values of several, and the table of all keys, from
//! which the manual is generated.

use super::{
    DefaultValue, ValueKind,
    general::{GENERAL, RUNNER, STEPS, TIMEOUTS},
    merge::{GATES, MERGE},
    protect::TESTS,
    sandbox::{RUNNER_SANDBOX, SANDBOX, STEP_SANDBOX},
    tracked::{PROMPTS, REVIEW},
    work::{BUDGET, ENGINES, SESSION, WORK},
    workspace::REPOS,
    worktree::{CLEANUP, WORKTREE},
};

/// A configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key in files; `git config` puts `arborist.` before it. `*` stands for one name.
    pub key: &'static str,
    /// The environment variable; `None` for keys with a `*`.
    pub variable: Option<&'static str>,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The values that it accepts, in words.
    pub expected: &'static str,
    /// The default.
    pub default: DefaultValue,
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

pub(super) const PATH: &str = "a path, in quotes";
pub(super) const SECONDS: &str = "a number of seconds, 0 or more";
pub(super) const POSITIVE_SECONDS: &str = "a number of seconds, 1 or more";

/// Defines a struct with a field for each key, and the table of these keys. So the type of a value, its default and
/// its description are in one place, and no key can be in the manual without being read.
macro_rules! settings {
    ($(#[$doc:meta])* $group:ident in $table:ident;
     $($field:ident: $type:ty { key: $key:literal, $($definition:tt)* })*) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $group {
            $(#[doc = concat!("`", $key, "`")] pub $field: $type,)*
        }

        impl $group {
            /// Reads the fields. `name` replaces the first `*` of each key, and `prefix` is put before it.
            pub(super) fn read(
                assigned: &$crate::settings::value::Assignments,
                prefix: &str,
                name: &str,
            ) -> Self {
                let key = |key: &str| format!("{prefix}{}", key.replacen('*', name, 1));
                Self {
                    $($field: {
                        const SETTING: $crate::settings::Setting =
                            $crate::settings::Setting { key: $key, $($definition)* };
                        const { assert!(
                            $crate::settings::value::can_be::<$type>(SETTING.default),
                            "a field that always has a value needs a default"
                        ) };
                        $crate::settings::value::SettingField::read(
                            assigned, &key(SETTING.key), SETTING.default,
                        )
                    },)*
                }
            }
        }

        /// In the order of the manual.
        pub(super) const $table: &[$crate::settings::Setting] =
            &[$($crate::settings::Setting { key: $key, $($definition)* }),*];
    };
}

/// Lists words as `a`, `a or b` or `a, b or c`.
macro_rules! listed_words {
    ($one:literal) => { $one };
    ($one:literal, $last:literal) => { concat!($one, " or ", $last) };
    ($first:literal, $($rest:literal),+) => {
        concat!($first, ", ", $crate::settings::setting::listed_words!($($rest),+))
    };
}

/// Defines the words that a setting can have, as an enum.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$meta])* $variant,)*
        }

        impl $name {
            /// All words.
            pub const WORDS: &[&str] = &[$($word),*];

            /// All words, as a message lists them.
            pub(in $crate::settings) const EXPECTED: &str =
                $crate::settings::setting::listed_words!($($word),*);

            /// The value of the setting.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::settings::value::FromValue for $name {
            fn from_value(value: &$crate::settings::value::Value) -> Option<Self> {
                match value {
                    $($crate::settings::value::Value::Text(text) if text == $word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(super) use {choices, listed_words, settings};

/// In a file, `[merge]` begins before `[[merge.gates]]`.
const MERGE_PARTS: (&[Setting], &[Setting]) = MERGE.split_at(1);

const PARTS: [&[Setting]; 20] = [
    GENERAL, STEPS, RUNNER, TIMEOUTS, TESTS, REVIEW, WORKTREE, PROMPTS, SANDBOX, STEP_SANDBOX,
    RUNNER_SANDBOX, MERGE_PARTS.0, GATES, MERGE_PARTS.1, BUDGET, SESSION, WORK, ENGINES, REPOS, CLEANUP,
];

/// All keys, in the order of the manual.
pub const SETTINGS: &[Setting] = &join();

const fn count() -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < PARTS.len() {
        sum += PARTS[part].len();
        part += 1;
    }
    sum
}

const fn join() -> [Setting; count()] {
    let mut all = [GENERAL[0]; count()];
    let (mut at, mut part, mut place) = (0, 0, 0);
    while at < all.len() {
        if place == PARTS[part].len() {
            (part, place) = (part + 1, 0);
        }
        all[at] = PARTS[part][place];
        (at, place) = (at + 1, place + 1);
    }
    all
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
