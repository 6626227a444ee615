//! One git setting, as git lists it and as it is written to a file.

/// Settings that are not copied: included files are copied by their content, and each command is told where the
/// worktree is.
const LEFT_OUT: [&str; 3] = ["core.bare", "core.worktree", "extensions.worktreeconfig"];

/// One setting, as `git config --list -z` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingEntry {
    /// Section and variable in lower case, a subsection as written.
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl SettingEntry {
    pub(super) fn parse(setting: &[u8]) -> Self {
        match memchr::memchr(b'\n', setting) {
            Some(end) => Self { key: setting[..end].to_vec(), value: Some(setting[end + 1..].to_vec()) },
            None => Self { key: setting.to_vec(), value: None },
        }
    }

    fn is_include(&self) -> bool {
        self.key.starts_with(b"include.") || self.key.starts_with(b"includeif.")
    }

    /// Whether it can make settings differ between worktrees.
    pub(super) fn makes_variants(&self) -> bool {
        self.key.starts_with(b"includeif.") || self.key == b"extensions.worktreeconfig"
    }

    pub(super) fn is_kept(&self) -> bool {
        !self.is_include() && !LEFT_OUT.iter().any(|key| key.as_bytes() == self.key)
    }

    pub(super) fn is_true(&self) -> bool {
        let value = self.value.as_deref().unwrap_or(b"true").to_ascii_lowercase();
        !matches!(&*value, b"" | b"0" | b"false" | b"no" | b"off")
    }

    /// The lines of a settings file; `None` for a key without a section.
    pub(super) fn to_lines(&self) -> Option<Vec<u8>> {
        let first = memchr::memchr(b'.', &self.key)?;
        let last = memchr::memrchr(b'.', &self.key)?;
        let mut text = b"[".to_vec();
        text.extend(&self.key[..first]);
        if last > first {
            text.extend(b" \"");
            text.extend(escaped(&self.key[first + 1..last], false));
            text.push(b'"');
        }
        text.extend(b"]\n\t");
        text.extend(&self.key[last + 1..]);
        if let Some(value) = &self.value {
            text.extend(b" = \"");
            text.extend(escaped(value, true));
            text.push(b'"');
        }
        text.push(b'\n');
        Some(text)
    }
}

/// Escapes a quoted text. In a subsection only quotes and backslashes are escaped.
fn escaped(text: &[u8], is_value: bool) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' | b'\\' => escaped.extend([b'\\', *byte]),
            b'\n' if is_value => escaped.extend(b"\\n"),
            _ => escaped.push(*byte),
        }
    }
    escaped
}
