//! Opens the object database of a repository with libgit2, for reading without its configuration, and for writing.
//!
//! libgit2 opens no repository with an unknown extension, although reftables or a partial clone do not change how
//! objects are stored. For reading, the folder of objects is enough. For writing to such a repository, a folder of ours
//! stands in for it: it has a configuration without these extensions, and a link to the objects.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use git2::{ConfigLevel, RepositoryOpenFlags};

use crate::{
    git::{Repository, settings::frozen_settings::new_scratch_folder},
    mutex::MutexExt,
    name::ObjectFormat,
    safe_files,
};

/// Variables that name other folders with objects, for example while a hook checks a push.
const OTHER_FOLDERS: [&str; 2] = ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"];
/// Settings about written objects that libgit2 ignores.
const SETTINGS_FOR_GIT_ONLY: [&str; 2] = ["core.fsync", "core.sharedRepository"];
/// A setting about written objects that a stand-in repository would not have.
const SETTING_OF_REPOSITORY: &str = "core.fsyncObjectFiles";
/// Extensions with which libgit2 opens a repository.
const KNOWN_EXTENSIONS: [&str; 4] = ["noop", "objectformat", "preciousobjects", "worktreeconfig"];
/// Extensions that libgit2 refuses, but that do not change how objects are stored.
const OTHER_EXTENSIONS: [&str; 3] = ["partialclone", "refstorage", "relativeworktrees"];

/// libgit2's object database of a repository, opened on first use. Clones share it.
#[derive(Clone, Default)]
pub(in crate::git) struct ObjectDatabase(Arc<OnceLock<Option<OpenObjects>>>);

impl fmt::Debug for ObjectDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectDatabase").finish_non_exhaustive()
    }
}

struct OpenObjects {
    reader: Mutex<git2::Repository>,
    writer: ObjectWriter,
}

/// How objects are written.
enum ObjectWriter {
    /// Only by git.
    Git,
    /// With the repository as libgit2 opens it on first use.
    Direct(OnceLock<Option<Mutex<git2::Repository>>>),
    /// By a stand-in repository of ours, created on first use.
    StandIn(OnceLock<Option<StandIn>>),
}

impl ObjectDatabase {
    /// Runs `action` with the object database for reading; `None` if libgit2 cannot be used.
    pub(in crate::git) fn read<T>(
        &self,
        repository: &Repository,
        action: impl FnOnce(&git2::Odb<'_>) -> T,
    ) -> Option<T> {
        let reader = self.open(repository)?.reader.hold();
        reader.odb().ok().map(|odb| action(&odb))
    }

    /// Runs `action` with a repository for writing objects; `None` if only git can write them.
    pub(in crate::git) fn write<T>(
        &self,
        repository: &Repository,
        action: impl FnOnce(&git2::Repository) -> T,
    ) -> Option<T> {
        let opened = match &self.open(repository)?.writer {
            ObjectWriter::Git => return None,
            ObjectWriter::Direct(opened) => {
                opened.get_or_init(|| open_writer(&repository.common_dir)).as_ref()?
            }
            ObjectWriter::StandIn(stand_in) => {
                let stand_in = stand_in.get_or_init(|| StandIn::make(repository)).as_ref()?;
                stand_in.is_intact().then_some(&stand_in.opened)?
            }
        };
        Some(action(&opened.hold()))
    }

    /// Opens it for writing, too.
    pub(in crate::git) fn open_for_run(&self, repository: &Repository) {
        let _ = self.write(repository, |_| ());
    }

    fn open(&self, repository: &Repository) -> Option<&OpenObjects> {
        self.0.get_or_init(|| OpenObjects::open(repository)).as_ref()
    }
}

impl OpenObjects {
    fn open(repository: &Repository) -> Option<Self> {
        if OTHER_FOLDERS.iter().any(|name| env::var_os(name).is_some()) {
            return None;
        }
        let config = load_config(&repository.common_dir)?;
        let extensions = list_extensions(&config)?;
        let is_known = |name: &String| KNOWN_EXTENSIONS.contains(&name.as_str());
        let is_harmless = |name: &String| is_known(name) || OTHER_EXTENSIONS.contains(&name.as_str());
        if !extensions.iter().all(is_harmless) {
            return None;
        }
        // libgit2 would check that every object in a new tree exists, which takes as long as all the rest. We have just
        // written the new ones, and they are hashed before they count.
        git2::opts::strict_object_creation(false);
        // Each read must verify the object file. With a cache, small trees and commits would come from memory.
        git2::opts::enable_caching(false);
        let reader = Mutex::new(open_reader(repository)?);
        let writer = ObjectWriter::choose(&config, extensions.iter().all(is_known));
        Some(Self { reader, writer })
    }
}

impl ObjectWriter {
    fn choose(config: &git2::Config, is_known: bool) -> Self {
        let has = |name: &str| config.get_entry(name).is_ok();
        if SETTINGS_FOR_GIT_ONLY.iter().any(|name| has(name)) {
            return Self::Git;
        }
        if is_known {
            return Self::Direct(OnceLock::new());
        }
        if has(SETTING_OF_REPOSITORY) { Self::Git } else { Self::StandIn(OnceLock::new()) }
    }
}

/// A repository of ours with the objects of another one.
struct StandIn {
    opened: Mutex<git2::Repository>,
    /// Its folder of objects, and the target of that link.
    link: PathBuf,
    objects: PathBuf,
}

impl StandIn {
    fn make(repository: &Repository) -> Option<Self> {
        let dir = new_scratch_folder(&repository.common_dir).ok()?;
        let (link, objects) = (dir.join("objects"), repository.common_dir.join("objects"));
        let format = libgit2_format(repository.format);
        let config = format!(
            "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = {format}\n"
        );
        safe_files::make_folder(&dir.join("refs")).ok()?;
        safe_files::symlink(&objects, &link).ok()?;
        safe_files::write(&dir.join("config"), config.as_bytes()).ok()?;
        safe_files::write(&dir.join("HEAD"), b"ref: refs/heads/none\n").ok()?;
        Some(Self { opened: open_writer(&dir)?, link, objects })
    }

    /// Whether the link is unchanged. An agent can write to every file of the user, and temporary files may be cleaned
    /// up: then git writes the objects.
    fn is_intact(&self) -> bool {
        fs::read_link(&self.link).is_ok_and(|target| target == self.objects)
    }
}

/// The configuration about written objects, as libgit2 reads it. It is read once; what an agent writes there later is
/// ignored.
fn load_config(common_dir: &Path) -> Option<git2::Config> {
    let mut config = git2::Config::open_default().ok()?;
    for (name, level) in [("config", ConfigLevel::Local), ("config.worktree", ConfigLevel::Worktree)] {
        let file = common_dir.join(name);
        if file.is_file() {
            config.add_file(&file, level, true).ok()?;
        }
    }
    Some(config)
}

fn list_extensions(config: &git2::Config) -> Option<Vec<String>> {
    let mut extensions = Vec::new();
    let entries = config.entries(Some("^extensions\\.")).ok()?;
    entries
        .for_each(|entry| {
            let name = entry.name().ok().and_then(|name| name.strip_prefix("extensions."));
            extensions.push(name.unwrap_or_default().to_owned());
        })
        .ok()?;
    Some(extensions)
}

/// Opens the objects without any configuration.
fn open_reader(repository: &Repository) -> Option<git2::Repository> {
    let odb = git2::Odb::new_ext(libgit2_format(repository.format)).ok()?;
    odb.add_disk_alternate(repository.common_dir.join("objects").to_str()?).ok()?;
    git2::Repository::from_odb(odb).ok()
}

fn open_writer(dir: &Path) -> Option<Mutex<git2::Repository>> {
    let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT | RepositoryOpenFlags::BARE;
    let no_ceiling: [&Path; 0] = [];
    let opened = git2::Repository::open_ext(dir, flags, no_ceiling).ok()?;
    // Only the object database is kept, so that libgit2 never reads what an agent writes into the configuration later.
    git2::Repository::from_odb(opened.odb().ok()?).ok().map(Mutex::new)
}

/// The object format as libgit2's type.
pub(in crate::git) const fn libgit2_format(format: ObjectFormat) -> git2::ObjectFormat {
    match format {
        ObjectFormat::Sha1 => git2::ObjectFormat::Sha1,
        ObjectFormat::Sha256 => git2::ObjectFormat::Sha256,
    }
}
