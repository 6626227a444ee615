//! The directories in which `man` and the shells search.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use arborist_core::failure::{Exit, Failure};

use super::assets::AssetFolder;

/// A directory for files, and its root, which no symbolic link may lead out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstallFolder {
    pub(super) root: PathBuf,
    pub(super) dir: PathBuf,
}

/// How files are laid out.
#[derive(Debug)]
pub(super) enum Layout {
    /// Below one prefix, as distributions do it.
    Distribution(PathBuf),
    /// In the directories of this user.
    User(Surroundings),
}

/// The user's directories according to the environment.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    home: Option<PathBuf>,
    data: Option<PathBuf>,
    config: Option<PathBuf>,
    bash: Option<PathBuf>,
    /// `<prefix>` if our own program is `<prefix>/bin/…` and that directory is on `PATH`.
    prefix: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn of_process() -> Self {
        let exe = env::current_exe().ok();
        let path = env::var_os("PATH").unwrap_or_default();
        Self {
            home: absolute("HOME"),
            data: absolute("XDG_DATA_HOME"),
            config: absolute("XDG_CONFIG_HOME"),
            bash: absolute("BASH_COMPLETION_USER_DIR"),
            prefix: exe.and_then(|exe| prefix_of(&exe, &path)),
        }
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn require_home(&self) -> Result<&Path, Failure> {
        self.home().ok_or_else(|| {
            Failure::new(Exit::Fatal, "HOME is not set, so there is no folder to install to")
                .hint("set HOME, or name a place with: git arborist install-assets --prefix <dir>")
        })
    }

    fn data(&self, below: &str) -> Result<InstallFolder, Failure> {
        self.below(self.data.as_deref(), ".local/share", below)
    }

    fn config(&self, below: &str) -> Result<InstallFolder, Failure> {
        self.below(self.config.as_deref(), ".config", below)
    }

    /// `below` in a configured directory, or in its default at home.
    fn below(&self, named: Option<&Path>, usual: &str, below: &str) -> Result<InstallFolder, Failure> {
        if let Some(root) = named {
            return Ok(InstallFolder { root: root.to_owned(), dir: root.join(below) });
        }
        let root = self.require_home()?.to_owned();
        let dir = root.join(usual).join(below);
        Ok(InstallFolder { root, dir })
    }

    fn bash(&self) -> Result<InstallFolder, Failure> {
        match &self.bash {
            Some(root) => Ok(InstallFolder { root: root.clone(), dir: root.join("completions") }),
            None => self.data("bash-completion/completions"),
        }
    }

    /// Both directories for manual pages; the one to write to first.
    fn manuals(&self, section: &str) -> Result<Vec<InstallFolder>, Failure> {
        let own = self.data(&format!("man/{section}"));
        let beside = self.prefix.as_ref().map(|prefix| distribution(prefix, &format!("man/{section}")));
        match beside {
            Some(place) if is_writable(&place.dir) => Ok(std::iter::once(place).chain(own).collect()),
            Some(place) => Ok(vec![own?, place]),
            None => Ok(vec![own?]),
        }
    }
}

impl Layout {
    /// The directories for files of this kind; the one to write to first.
    pub(super) fn places(&self, asset_folder: AssetFolder) -> Result<Vec<InstallFolder>, Failure> {
        let user = match self {
            Self::Distribution(prefix) => return Ok(vec![distribution(prefix, shared_folder(asset_folder))]),
            Self::User(user) => user,
        };
        let place = match asset_folder {
            AssetFolder::Man1 => return user.manuals("man1"),
            AssetFolder::Man5 => return user.manuals("man5"),
            AssetFolder::Bash => user.bash(),
            AssetFolder::Zsh => user.data("zsh/site-functions"),
            AssetFolder::FishCompletion => user.config("fish/completions"),
            AssetFolder::FishStart => user.config("fish/conf.d"),
        };
        Ok(vec![place?])
    }
}

fn distribution(prefix: &Path, folder: &str) -> InstallFolder {
    InstallFolder { root: prefix.to_owned(), dir: prefix.join("share").join(folder) }
}

fn shared_folder(asset_folder: AssetFolder) -> &'static str {
    match asset_folder {
        AssetFolder::Man1 => "man/man1",
        AssetFolder::Man5 => "man/man5",
        AssetFolder::Bash => "bash-completion/completions",
        AssetFolder::Zsh => "zsh/site-functions",
        AssetFolder::FishCompletion => "fish/vendor_completions.d",
        AssetFolder::FishStart => "fish/vendor_conf.d",
    }
}

/// A directory from the environment. According to the standard, relative ones are ignored; of a list, the first is the
/// user's own.
fn absolute(name: &str) -> Option<PathBuf> {
    let value = env::var_os(name)?;
    env::split_paths(&value).next().filter(|path| path.is_absolute())
}

fn prefix_of(exe: &Path, path: &OsString) -> Option<PathBuf> {
    let bin = exe.parent().filter(|dir| dir.ends_with("bin"))?;
    let same = |dir: PathBuf| dir == bin || dir.canonicalize().is_ok_and(|dir| dir == bin);
    env::split_paths(path).any(same).then(|| bin.parent().map(Path::to_owned))?
}

/// Whether we may write to `dir`, or create it.
fn is_writable(dir: &Path) -> bool {
    let nearest = dir.ancestors().find(|dir| dir.exists());
    nearest.is_some_and(|dir| rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_prefix_counts_only_if_its_bin_folder_is_on_path() {
        let exe = Path::new("/opt/tree/bin/git-arborist-install-assets");
        assert_eq!(prefix_of(exe, &"/bin:/opt/tree/bin".into()), Some("/opt/tree".into()));
        assert_eq!(prefix_of(exe, &"/bin".into()), None);
        assert_eq!(prefix_of(Path::new("/opt/tree/debug/x"), &"/opt/tree/debug".into()), None);
    }

    #[test]
    fn without_a_home_only_explicitly_given_folders_are_used() {
        let user = Surroundings { data: Some("/data".into()), ..Surroundings::default() };
        let layout = Layout::User(user);
        let zsh = InstallFolder { root: "/data".into(), dir: "/data/zsh/site-functions".into() };
        assert_eq!(layout.places(AssetFolder::Zsh), Ok(vec![zsh]));
        assert_eq!(layout.places(AssetFolder::FishStart).map_err(|failure| failure.exit), Err(Exit::Fatal));
    }
}
