//! Streams commits from `git rev-list --header`: as fast as git itself reads them, and for every kind of repository
//! that git can open.

use std::{
    io::BufRead,
    ops::Range,
    sync::{Arc, LazyLock},
};

use memchr::memmem::Finder;

use crate::{
    git::{GitError, Repository, command::without_prefix},
    name::{ObjectKind, Oid},
    process::{ProcessError, RunningProgram},
};

/// A commit and its bytes, which may be a part of a larger buffer.
#[derive(Debug, Clone)]
pub struct RawCommit {
    /// Its id.
    pub id: Oid,
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
    /// The length of the header.
    split: usize,
}

impl RawCommit {
    /// A commit with this content: header, empty line, message.
    #[must_use]
    pub fn new(id: Oid, content: Vec<u8>) -> Self {
        let split = end_of_header(&content);
        Self { id, range: 0..content.len(), buffer: Arc::new(content), split }
    }

    /// A commit whose content is a part of `buffer`.
    #[must_use]
    pub fn within(buffer: &Arc<Vec<u8>>, id: Oid, range: Range<usize>) -> Option<Self> {
        let split = end_of_header(buffer.get(range.clone())?);
        Some(Self { id, buffer: Arc::clone(buffer), range, split })
    }

    /// Header, empty line, message.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    /// The lines before the message, including the last line end.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.content()[..self.split]
    }

    /// The message, as it is in the object.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.content().get(self.split + 1..).unwrap_or_default()
    }

    /// Its tree.
    #[must_use]
    pub fn tree(&self) -> Option<Oid> {
        lines(self.header()).next().and_then(|line| line.strip_prefix(b"tree ")).and_then(Oid::from_hex)
    }

    /// Its parents according to the object itself, regardless of grafts.
    pub fn parents(&self) -> impl Iterator<Item = Oid> {
        lines(self.header()).skip(1).map_while(|line| line.strip_prefix(b"parent ")).filter_map(Oid::from_hex)
    }

    /// The mail address of its committer.
    #[must_use]
    pub fn committer(&self) -> Option<String> {
        let line = lines(self.header()).find(|line| line.starts_with(b"committer "))?;
        address(line)
    }

    /// When it was committed: seconds since 1970 and the offset as written, such as `+0100`.
    #[must_use]
    pub fn committed(&self) -> Option<(i64, &str)> {
        let line = lines(self.header()).find(|line| line.starts_with(b"committer "))?;
        let tail = &line[memchr::memrchr(b'>', line)? + 1..];
        let mut words = std::str::from_utf8(tail).ok()?.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, words.next().unwrap_or("+0000")))
    }

    /// Whether the bytes match the id.
    #[must_use]
    pub fn is_authentic(&self) -> bool {
        Oid::of(ObjectKind::Commit, self.content(), self.id.format()) == self.id
    }
}

/// A stream of commits. Dropping it early ends git.
#[derive(Debug)]
pub struct CommitStream(Source);

#[derive(Debug)]
enum Source {
    /// They were read in this process.
    Read(std::vec::IntoIter<RawCommit>),
    /// git is reading them.
    Process(Box<Records>),
}

/// The output of `git rev-list --header`.
#[derive(Debug)]
struct Records {
    name: String,
    running: Option<RunningProgram>,
    hex_len: usize,
    record: Vec<u8>,
}

/// The text between the last angle brackets of an author or committer line.
fn address(line: &[u8]) -> Option<String> {
    let (from, to) = (memchr::memrchr(b'<', line)?, memchr::memrchr(b'>', line)?);
    Some(String::from_utf8_lossy(line.get(from + 1..to)?).into_owned())
}

impl Repository {
    /// The mail address of this user's commits.
    pub fn committer(&self) -> Result<Option<String>, GitError> {
        Ok(address(&self.git("var").arg("GIT_COMMITTER_IDENT").stdout()?))
    }

    /// Streams the commits that `revisions` select: ids, `^ids`, or options of `rev-list`.
    ///
    /// The bytes are those of the object, except that white space at the ends of lines and of the message is lost, and
    /// that they end at a NUL: [`RawCommit::is_authentic`] shows where that made a difference.
    pub fn stream_commits(&self, revisions: &[String]) -> Result<CommitStream, GitError> {
        if let Some((tips, hidden)) = range_of(revisions)
            && let Some(commits) = self.walk_range(&tips, &hidden)?
        {
            return Ok(CommitStream(Source::Read(commits.into_iter())));
        }
        let (name, running) = self.git("rev-list").arg("--header").args(revisions).start()?;
        let hex_len = self.format.hex_len();
        Ok(CommitStream(Source::Process(Box::new(Records {
            name,
            running: Some(running),
            hex_len,
            record: Vec::new(),
        }))))
    }
}

impl Repository {
    /// The exact commit, read again if the stream lost white space or stopped at a NUL.
    pub fn exact(&self, commit: RawCommit) -> Result<RawCommit, GitError> {
        if commit.is_authentic() {
            return Ok(commit);
        }
        Ok(self.load_commits(&[commit.id])?.pop().unwrap_or(commit))
    }
}

impl Records {
    fn read_record(&mut self) -> Result<Option<RawCommit>, GitError> {
        self.record.clear();
        let Some(output) = self.running.as_mut().and_then(RunningProgram::output) else {
            return Ok(None);
        };
        let read = output
            .read_until(0, &mut self.record)
            .map_err(|source| GitError::Process(ProcessError { program: "git".into(), source }))?;
        if read == 0 {
            return self.end();
        }
        self.parse_record().map(Some)
    }

    /// If git fails before the end, that is an error.
    fn end(&mut self) -> Result<Option<RawCommit>, GitError> {
        if let Some(running) = self.running.take() {
            let finished = running.finish()?;
            if !finished.status.success() {
                return Err(GitError::Failed {
                    command: self.name.clone(),
                    complaint: without_prefix(&finished.complaint()),
                });
            }
        }
        Ok(None)
    }

    fn parse_record(&self) -> Result<RawCommit, GitError> {
        let record = self.record.strip_suffix(b"\0").unwrap_or(&self.record);
        let unexpected = || GitError::unexpected("rev-list", "a record without an id");
        let id = record.get(..self.hex_len).and_then(Oid::from_hex).ok_or_else(unexpected)?;
        let text = record.get(self.hex_len + 1..).ok_or_else(unexpected)?;
        Ok(RawCommit::new(id, unindent(text)))
    }
}

impl Iterator for CommitStream {
    type Item = Result<RawCommit, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Read(commits) => commits.next().map(Ok),
            Source::Process(records) => records.read_record().transpose(),
        }
    }
}

/// The tips and the excluded commits of a range. `None` without excluded commits: then the caller may want only the
/// beginning of a long history, and git prints that piece by piece.
fn range_of(revisions: &[String]) -> Option<(Vec<Oid>, Vec<Oid>)> {
    let (hidden, tips): (Vec<&String>, Vec<&String>) =
        revisions.iter().partition(|name| name.starts_with('^'));
    let tips: Option<Vec<Oid>> = tips.iter().map(|name| name.parse().ok()).collect();
    let hidden: Option<Vec<Oid>> = hidden.iter().map(|name| name[1..].parse().ok()).collect();
    Some((tips?, hidden.filter(|hidden| !hidden.is_empty())?))
}

/// The lines of a header, without line ends.
fn lines(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr::memchr_iter(b'\n', header).chain([header.len()]).map(move |end| {
        let line = &header[from..end];
        from = end + 1;
        line
    })
}

/// The header ends at the first empty line; that line is not part of it.
fn end_of_header(content: &[u8]) -> usize {
    static EMPTY_LINE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n\n"));
    EMPTY_LINE.find(content).map_or(content.len(), |at| at + 1)
}

/// Removes the four spaces that `--header` puts before every line of the message.
fn unindent(text: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(text.len());
    let split = (end_of_header(text) + 1).min(text.len());
    content.extend_from_slice(&text[..split]);
    for line in text[split..].split_inclusive(|b| *b == b'\n') {
        content.extend_from_slice(line.strip_prefix(b"    ").unwrap_or(line));
    }
    content
}
