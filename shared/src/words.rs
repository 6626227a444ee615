//! Enums whose variants are words.

/// Defines an enum with a word for each variant, so that each word is written once.
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        $vis enum $name {
            $($(#[$meta])* $variant,)*
        }

        impl $name {
            /// All of them, in their order.
            $vis const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The variant of this word, if there is one.
            #[must_use]
            $vis fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use words;
