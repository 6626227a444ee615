//! Tries out what a child in the sandbox can do, with a harmless attempt for each rule.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, Mode, OFlags};

use super::{ProgramFolder, Sandbox, SandboxedChild, folders};
use crate::{
    process::{Confinement, ConfinementBackend, Limits, Program, ResourceLimits, Supervised},
    safe_files,
};

/// The rule about the size of files.
const LARGE: &str = "write large files";

/// The checkout that the attempts are made in, and a file in another worktree beside it.
const PLACE: &str = "worktrees/checkout";
const OTHER_FILE: &str = "worktrees/other/file";
/// A file in the git directory of another repository of the workspace, and of one beside it.
const OTHER_GIT: &str = "repository/.git/HEAD";
const NEIGHBOUR: &str = "neighbour/.git/HEAD";

/// How deep a hidden folder is searched for a file to read.
const DEEPEST: usize = 3;

/// How long all attempts may take together.
const TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Makes one attempt for each pair of arguments, and prints whether it worked. Nothing is left behind.
const SCRIPT: &str = r#"
while [ $# -gt 0 ]; do
  case $1 in
    write) file=$2/.git-arborist-check.$$; (: > "$file") 2>/dev/null && rm -f "$file" ;;
    open) (: >> "$2") 2>/dev/null ;;
    move) mv "$2" "$2.moved" 2>/dev/null && mv "$2.moved" "$2" ;;
    read) if [ -d "$2" ]; then [ -n "$(ls -A "$2" 2>/dev/null)" ]; else [ -n "$(head -c 1 "$2" 2>/dev/null)" ]; fi ;;
    inspect) grep -aq arborist "/proc/$2/cmdline" 2>/dev/null && [ -n "$(head -c 1 "/proc/$2/environ" 2>/dev/null | tr '\0' .)" ] ;;
    process) [ "$(readlink /proc/self/ns/pid)" = "$2" ] ;;
    terminal) (: > "$2") 2>/dev/null ;;
    temp) file=$(mktemp) && rm "$file" ;;
    mode) chmod 700 "$2" 2>/dev/null ;;
    signal) kill -0 "$2" 2>/dev/null ;;
    size) (dd if=/dev/zero of=large bs=1 count=1 seek="$2") 2>/dev/null; code=$?; rm -f large; [ $code = 0 ] ;;
    network) [ "$(readlink /proc/self/ns/net)" = "$2" ] ;;
  esac && echo yes || echo no
  shift 2
done
"#;

/// Prints the limit of processes. It starts none itself, because it may be the only one.
const PROCESSES: &str = "ulimit -u 2>/dev/null || ulimit -p";

/// What a rule wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleIntent {
    /// It must work.
    Allow,
    /// It must not work.
    Deny,
}

/// What happened in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOutcome {
    /// It works, and may.
    Allowed,
    /// It does not work, and must not.
    Denied,
    /// It works, but should not.
    NotEnforced,
    /// It does not work, but should.
    Blocked,
    /// Only so much of it works.
    Limited {
        /// The limit.
        most: u64,
        /// Its unit.
        unit: &'static str,
    },
    /// It works without a limit, and may.
    Unlimited,
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::NotEnforced => "not enforced",
            Self::Blocked => "blocked",
            Self::Limited { most, unit } => return write!(f, "limited to {most} {unit}"),
            Self::Unlimited => "not limited",
        })
    }
}

impl RuleOutcome {
    /// Whether it is as configured.
    #[must_use]
    pub const fn is_as_configured(self) -> bool {
        !matches!(self, Self::NotEnforced | Self::Blocked)
    }

    const fn new(intent: RuleIntent, works: bool) -> Self {
        match (intent, works) {
            (RuleIntent::Allow, true) => Self::Allowed,
            (RuleIntent::Allow, false) => Self::Blocked,
            (RuleIntent::Deny, true) => Self::NotEnforced,
            (RuleIntent::Deny, false) => Self::Denied,
        }
    }
}

/// A rule and what happened when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRule {
    /// What was tried.
    pub rule: String,
    /// What happened.
    pub outcome: RuleOutcome,
}

struct Attempt {
    rule: String,
    intent: RuleIntent,
    what: &'static str,
    argument: PathBuf,
}

impl Sandbox {
    /// Tries out each rule as a child that works in a scratch checkout, whose other properties are those of `child`.
    pub fn check(&self, child: &SandboxedChild<'_>) -> io::Result<Vec<CheckedRule>> {
        let root = tempfile::Builder::new().prefix("git-arborist-").tempdir()?;
        let top = safe_files::resolved(root.path());
        let place = top.join(PLACE);
        for folder in
            ["worktrees/checkout/.git", "worktrees/other", "repository/.git", "neighbour/.git", "beside"]
        {
            safe_files::make_folder(&top.join(folder))?;
        }
        for file in [OTHER_FILE, OTHER_GIT, NEIGHBOUR] {
            safe_files::write(&top.join(file), b"x")?;
        }
        let sandbox = Self {
            makes_folders: false,
            repositories: vec![top.join("repository")],
            worktree_folder: Some(top.join("worktrees")),
            ..self.clone()
        };
        let mut child = SandboxedChild { places: vec![place.clone()], ..child.clone() };
        // Missing folders would be made.
        child.state.retain(|state| match state {
            ProgramFolder::Folder(path) | ProgramFolder::File(path) => path.exists(),
        });
        let attempts = sandbox.attempts(&child, &top);
        let confinement = sandbox.confine(&child);
        let resources = self.resources(&child);
        // The attempts themselves start programs.
        let for_attempts = ResourceLimits { processes: None, ..resources };
        let for_attempts = confinement.clone().map(|confinement| confinement.with_resources(for_attempts));
        let mut program = shell(SCRIPT, &place, for_attempts);
        for attempt in &attempts {
            program = program.arg(attempt.what).arg(&attempt.argument);
        }
        let output = run(program)?;
        let answers: Vec<bool> = output.lines().map(|line| line == "yes").collect();
        if answers.len() != attempts.len() {
            return Err(io::Error::other("the check was not completed"));
        }
        let checked = attempts.into_iter().zip(answers);
        let checked = checked.map(|(attempt, works)| CheckedRule {
            outcome: match (attempt.what, resources.file_size) {
                ("size", Some(most)) if !works => RuleOutcome::Limited { most, unit: "MB" },
                _ => RuleOutcome::new(attempt.intent, works),
            },
            rule: attempt.rule,
        });
        let mut checked: Vec<CheckedRule> = checked.collect();
        if resources.file_size.is_none() {
            checked.push(CheckedRule { rule: LARGE.to_owned(), outcome: RuleOutcome::Unlimited });
        }
        let outcome = match resources.processes {
            None => RuleOutcome::Unlimited,
            Some(most) => {
                let output = run(shell(PROCESSES, &place, confinement))?;
                let is_limited = output.trim() != "unlimited" && !rustix::process::getuid().is_root();
                let unit = if most == 1 { "process" } else { "processes" };
                let limited = RuleOutcome::Limited { most, unit };
                if is_limited { limited } else { RuleOutcome::NotEnforced }
            }
        };
        checked.push(CheckedRule { rule: "run many processes".to_owned(), outcome });
        Ok(checked)
    }

    fn attempts(&self, child: &SandboxedChild<'_>, top: &Path) -> Vec<Attempt> {
        let place = top.join(PLACE);
        let attempt = |rule: &str, intent, what, argument: PathBuf| Attempt {
            rule: rule.to_owned(),
            intent,
            what,
            argument,
        };
        let mut all = vec![
            attempt("write the worktree", RuleIntent::Allow, "write", place.clone()),
            attempt("write temporary files", RuleIntent::Allow, "temp", PathBuf::new()),
            attempt("write .git in the worktree", RuleIntent::Deny, "write", place.join(".git")),
            attempt("replace .git in the worktree", RuleIntent::Deny, "move", place.join(".git")),
            attempt("write beside the worktree", RuleIntent::Deny, "write", top.join("beside")),
        ];
        // Landlock has no right for this.
        all.push(attempt(
            "change modes and times of files outside the worktree",
            RuleIntent::Deny,
            "mode",
            top.join("beside"),
        ));
        let granted = self.granted(child);
        if let Some(home) = folders::home().map(|home| safe_files::resolved(&home)) {
            let is_granted = granted.iter().any(|folder| home.starts_with(folder));
            let intent = if is_granted { RuleIntent::Allow } else { RuleIntent::Deny };
            all.push(attempt("write the home directory", intent, "write", home));
        }
        for git_dir in self.list_git_dirs(child) {
            if granted.iter().any(|folder| git_dir.starts_with(folder)) {
                let rule = format!("write {}", git_dir.display());
                all.push(attempt(&rule, RuleIntent::Deny, "write", git_dir));
            }
        }
        for path in granted.into_iter().filter(|path| path.exists()) {
            let rule = format!("write {}", path.display());
            let what = if path.is_file() { "open" } else { "write" };
            all.push(attempt(&rule, RuleIntent::Allow, what, path));
        }
        for state in &child.state {
            let (what, path) = match state {
                ProgramFolder::Folder(folder) => ("write", folder),
                ProgramFolder::File(file) => ("open", file),
            };
            let rule = format!("write {}", path.display());
            all.push(attempt(&rule, RuleIntent::Allow, what, path.clone()));
        }
        // A weaker backend does not enforce all of it.
        let (foreign, hidden): (Vec<PathBuf>, Vec<PathBuf>) = self
            .hidden(child, ConfinementBackend::Bwrap)
            .0
            .into_iter()
            .partition(|path| path.starts_with(top));
        // One rule stands for all of these.
        let neighbours = self.list_neighbours(child);
        for path in hidden.into_iter().filter(|path| !neighbours.contains(path)) {
            let rule = format!("read {}", path.display());
            let file = find_file(&path, DEEPEST).or_else(|| has_entries(&path).then_some(path));
            all.extend(file.map(|file| attempt(&rule, RuleIntent::Deny, "read", file)));
        }
        for (rule, file) in [
            ("read worktrees of other tasks", OTHER_FILE),
            ("read .git of other repositories of the workspace", OTHER_GIT),
            ("read .git of repositories beside this one", NEIGHBOUR),
        ] {
            let is_hidden = foreign.iter().any(|hidden| top.join(file).starts_with(hidden));
            let intent = if is_hidden { RuleIntent::Deny } else { RuleIntent::Allow };
            all.push(attempt(rule, intent, "read", top.join(file)));
        }
        let driver = PathBuf::from(std::process::id().to_string());
        all.push(attempt("send signals to other processes", RuleIntent::Deny, "signal", driver.clone()));
        if Path::new("/proc/self/environ").exists() {
            all.push(attempt("read the environment of other processes", RuleIntent::Deny, "inspect", driver));
        }
        if let Ok(namespace) = fs::read_link("/proc/self/ns/pid") {
            all.push(attempt("let processes outlive their step", RuleIntent::Deny, "process", namespace));
        }
        let terminal = Path::new("/dev/tty");
        // Without a terminal, nothing could be tried.
        if rustix::fs::open(terminal, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).is_ok() {
            all.push(attempt("write to your terminal", RuleIntent::Deny, "terminal", terminal.to_owned()));
        }
        if let Ok(namespace) = fs::read_link("/proc/self/ns/net") {
            let is_offline = self.offline_by(Some(child.step), child.runner).is_some();
            let intent = if is_offline { RuleIntent::Deny } else { RuleIntent::Allow };
            all.push(attempt("use the network", intent, "network", namespace));
        }
        if let Some(bytes) = self.resources(child).file_bytes() {
            all.push(attempt(LARGE, RuleIntent::Deny, "size", bytes.to_string().into()));
        }
        all
    }
}

fn shell(script: &str, place: &Path, confinement: Option<Confinement>) -> Program {
    Program::located("sh").args(["-c", script, "sh"]).dir(place).confined_if(confinement)
}

/// The output of a program of the check.
fn run(program: Program) -> io::Result<String> {
    let limits = Limits { whole: Some(TIME), ..Limits::default() };
    let ended = Supervised::new(program).limits(limits).tail(1 << 16).run(|_| {});
    if !ended.ending.is_success() {
        let words = format!("the check {}: {}", ended.ending, ended.stderr.text.trim_end());
        return Err(io::Error::other(words));
    }
    Ok(ended.stdout.text)
}

/// A file with content in a folder, or the path itself if it is one. Names in a hidden folder may be visible; what counts is
/// whether a file can be read.
fn find_file(path: &Path, depth: usize) -> Option<PathBuf> {
    let found = path.symlink_metadata().ok()?;
    if found.is_file() {
        let is_readable = rustix::fs::access(path, Access::READ_OK).is_ok();
        return (found.len() > 0 && is_readable).then(|| path.to_owned());
    }
    let entries = fs::read_dir(path).ok().filter(|_| found.is_dir() && depth > 0)?;
    entries.flatten().find_map(|entry| find_file(&entry.path(), depth - 1))
}

fn has_entries(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
