//! A live view: a thread that receives events and keeps rows at the bottom of the terminal up to date.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    TextStyle, Tone,
    screen::{self, Painted},
};

/// How often the view is drawn without events, because of its clocks.
const TICK: Duration = Duration::from_millis(250);
/// How soon the view is drawn after an event; events in between are drawn together.
const REDRAW_DELAY: Duration = Duration::from_millis(40);

/// What a live view shows.
pub(crate) trait LiveContent: Send + 'static {
    /// The type of its events.
    type News: Send;

    /// Handles an event.
    fn handle_event(&mut self, event: Self::News);

    /// At most `most` rows for this width.
    fn rows(&self, columns: usize, most: usize) -> Vec<StyledRow>;
}

/// Text in several tones.
#[derive(Debug, Default)]
pub(crate) struct StyledRow(Vec<(Option<Tone>, String)>);

impl StyledRow {
    /// Adds words.
    pub(crate) fn with(mut self, tone: impl Into<Option<Tone>>, words: impl Into<String>) -> Self {
        self.0.push((tone.into(), words.into()));
        self
    }

    /// Adds the words of another row.
    pub(crate) fn followed_by(mut self, row: Self) -> Self {
        self.0.extend(row.0);
        self
    }

    /// Its width in columns.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, words)| words.width()).sum()
    }

    /// Renders it, cut to this width.
    fn paint(&self, style: TextStyle, columns: usize) -> Painted {
        let whole = self.width();
        let mark = if whole <= columns { "" } else { style.ellipsis() };
        let mut left = columns.saturating_sub(mark.width()).min(whole);
        let mut painted = Painted { text: String::new(), width: mark.width() };
        for (tone, words) in &self.0 {
            let part = cut(words, left);
            left = if part.len() == words.len() { left - part.width() } else { 0 };
            painted.width += part.width();
            painted.text += &tone.map_or_else(|| part.to_owned(), |tone| style.paint(tone, part));
        }
        painted.text += mark;
        painted
    }
}

/// The start of `text` that fits.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > columns
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// An open view. It ends when this is dropped, and leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Live<N> {
    sender: Option<Sender<N>>,
    thread: Option<JoinHandle<()>>,
}

impl<N: Send + 'static> Live<N> {
    /// Opens a view. If no thread can be started, nothing is shown.
    pub(super) fn open(content: impl LiveContent<News = N>, style: TextStyle) -> Self {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("view".into());
        let thread = thread.spawn(move || watch(content, &receiver, style)).ok();
        Self { sender: Some(sender), thread }
    }
}

impl<N> Live<N> {
    /// Sends an event.
    pub(crate) fn send(&self, event: N) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(event);
        }
    }
}

impl<N> Drop for Live<N> {
    fn drop(&mut self) {
        self.sender.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        screen::leave();
    }
}

fn watch<S: LiveContent>(mut content: S, receiver: &Receiver<S::News>, style: TextStyle) {
    let mut drawn = Instant::now();
    let mut next = drawn;
    loop {
        match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(event) => {
                content.handle_event(event);
                next = next.min(drawn + REDRAW_DELAY);
            }
            Err(RecvTimeoutError::Timeout) => {
                draw(&content, style);
                drawn = Instant::now();
                next = drawn + TICK;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Draws the rows. The last column stays free, because terminals differ in what they do after writing there.
fn draw(content: &impl LiveContent, style: TextStyle) {
    let Some((columns, height)) = screen::size() else { return };
    let columns = columns.saturating_sub(1);
    let rows = content.rows(columns, height.saturating_sub(1).max(1));
    screen::show(rows.iter().map(|row| row.paint(style, columns)).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_by_display_columns_and_never_within_a_character() {
        let style = TextStyle { is_coloured: false, has_unicode: true };
        let row = || StyledRow::default().with(Tone::Strong, "T1 ").with(None, "日本語 done");
        for (columns, text, width) in [
            (20, "T1 日本語 done", 14),
            (14, "T1 日本語 done", 14),
            (13, "T1 日本語 do…", 13),
            (7, "T1 日…", 6),
            (1, "…", 1),
        ] {
            let painted = row().paint(style, columns);
            assert_eq!((painted.text.as_str(), painted.width), (text, width), "{columns}");
        }
    }

    #[test]
    fn colour_codes_take_no_display_columns() {
        let style = TextStyle { is_coloured: true, has_unicode: true };
        let painted = StyledRow::default().with(Tone::Good, "done").with(None, " now").paint(style, 6);
        assert_eq!((painted.text.as_str(), painted.width), ("\x1b[32mdone\x1b[m …", 6));
    }
}
