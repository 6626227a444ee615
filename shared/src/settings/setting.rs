//! The definition of a configuration key, and of the structs that hold the values of several.

use super::{DefaultValue, ValueKind};

/// A configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key in files; `git config` puts `arborist.` before it. `*` stands for one name.
    pub key: &'static str,
    /// The environment variable; `None` for keys with a `*`.
    pub variable: Option<&'static str>,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The values that it accepts, in words, unless its kind says it.
    pub(super) expected: Option<&'static str>,
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

    /// The values that it accepts, in words.
    #[must_use]
    pub fn expected(&self) -> String {
        self.expected.map(str::to_owned).or_else(|| self.kind.in_words()).unwrap_or_default()
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
pub(super) const INNER_PATH: &str = "a path in the repository, in quotes";
pub(super) const MODEL_NAME: &str = "the name of a model, in quotes";
pub(super) const SECONDS: &str = "a number of seconds, 0 or more";
pub(super) const POSITIVE_SECONDS: &str = "a number of seconds, 1 or more";

/// Defines a key. `expected` is left out if its kind says which values it accepts, and `variable` if the key has a `*`.
macro_rules! setting {
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    {
        key: $key:literal,
        $(variable: $variable:expr,)?
        kind: $kind:expr,
        $(expected: $expected:expr,)?
        default: $default:expr,
        about: $about:expr,
    } => {
        $crate::settings::Setting {
            key: $key,
            variable: $crate::settings::setting::setting!(@optional $($variable)?),
            kind: $kind,
            expected: $crate::settings::setting::setting!(@optional $($expected)?),
            default: $default,
            about: $about,
        }
    };
}

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
                            $crate::settings::setting::setting! { key: $key, $($definition)* };
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
            &[$($crate::settings::setting::setting! { key: $key, $($definition)* }),*];
    };
}

/// Defines the words that a setting can have, as an enum.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)* }) => {
        $crate::words::words! {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub enum $name { $($(#[$meta])* $variant = $word,)* }
        }

        impl $name {
            /// All words.
            pub const WORDS: &[&str] = &[$($word),*];
        }

        impl $crate::settings::value::FromValue for $name {
            fn from_value(value: &$crate::settings::value::Value) -> Option<Self> {
                match value {
                    $crate::settings::value::Value::Text(text) => Self::of_word(text),
                    _ => None,
                }
            }
        }
    };
}

pub(super) use {choices, setting, settings};
