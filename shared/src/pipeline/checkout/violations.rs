//! What a child process did without permission.

/// Messages about what a child did without permission, each once. It has been undone.
#[derive(Debug, Clone, Default)]
pub struct Violations(Vec<String>);

impl Violations {
    /// Adds a message.
    pub fn add(&mut self, message: String) {
        if !self.has(&message) {
            self.0.push(message);
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this message is among them.
    #[must_use]
    pub fn has(&self, message: &String) -> bool {
        self.0.contains(message)
    }

    /// All messages in one line; `None` if there are none.
    #[must_use]
    pub fn in_one_line(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.0.join("; "))
    }

    /// The same for a child that is an agent. Messages about what it did come first, and name it.
    #[must_use]
    pub fn of_agent(&self) -> Option<String> {
        let (deeds, others): (Vec<&str>, Vec<&str>) =
            self.0.iter().map(String::as_str).partition(|message| message.starts_with("it "));
        let line = deeds.into_iter().chain(others).collect::<Vec<_>>().join("; ");
        let line = line.strip_prefix("it ").map_or_else(|| line.clone(), |rest| format!("the agent {rest}"));
        (!line.is_empty()).then_some(line)
    }
}

impl Extend<String> for Violations {
    fn extend<T: IntoIterator<Item = String>>(&mut self, messages: T) {
        messages.into_iter().for_each(|message| self.add(message));
    }
}

impl FromIterator<String> for Violations {
    fn from_iter<T: IntoIterator<Item = String>>(messages: T) -> Self {
        let mut violations = Self::default();
        violations.extend(messages);
        violations
    }
}

impl IntoIterator for Violations {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
