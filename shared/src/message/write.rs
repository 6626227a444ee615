//! Writes messages. What is composed here is sound, and every reader agrees on it.

use std::fmt::Write;

use super::{Body, Fault, Key, MessageReading, Subject, Trailers, read};

/// A sound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The first line.
    pub subject: Subject,
    /// The text between subject and trailers, unparsed; see [`Body::parse`].
    pub body: String,
    /// Our trailers.
    pub trailers: Trailers,
    /// Lines that others may add after ours, such as `Signed-off-by: …`.
    pub foreign: Vec<String>,
}

impl Message {
    /// Composes a message. Step and outcome follow from the subject and need not be given; trailers are put into their
    /// order. Refuses anything that would not be read back as exactly this.
    pub fn compose(subject: Subject, mut body: Body, given: &Trailers) -> Result<Self, Vec<Fault>> {
        body.sections.retain(|section| !section.heading.is_empty() || !section.text.is_empty());
        let trailers = ordered(&subject, given).map_err(|fault| vec![fault])?;
        let body = body.render().trim_end().to_owned();
        let message = Self { subject, body, trailers, foreign: Vec::new() };
        match read(message.render().as_bytes()) {
            MessageReading::WellFormed(back) if *back == message => Ok(message),
            MessageReading::Malformed(faults) => Err(faults),
            _ => Err(vec![Fault::new(1, "the message cannot be read back unchanged", "shorten its body")]),
        }
    }

    /// The text of the commit message.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = format!("{}\n\n", self.subject);
        if !self.body.is_empty() {
            let _ = writeln!(text, "{}\n", self.body);
        }
        for (key, value) in self.trailers.iter() {
            let _ = writeln!(text, "{}: {value}", key.as_str());
        }
        for line in &self.foreign {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

fn ordered(subject: &Subject, given: &Trailers) -> Result<Trailers, Fault> {
    let mut all = given.clone();
    let mut implied = vec![(Key::Step, subject.status.step().as_str())];
    implied.extend(subject.status.outcome());
    for (key, value) in implied {
        all.set(key, value).map_err(|expected| Fault::new(1, value, expected))?;
    }
    let required = subject.status.required();
    let optional = Key::ALL.iter().filter(|key| !required.contains(key));
    let mut trailers = Trailers::default();
    for key in required.iter().chain(optional) {
        if let Some(value) = all.get(*key) {
            trailers.set(*key, value).map_err(|expected| Fault::new(1, value, expected))?;
        }
    }
    Ok(trailers)
}
