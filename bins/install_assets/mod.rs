//! `git arborist install-assets`: puts manual pages and completions where `man` and the shells look for them.

mod advice;
mod assets;
mod embedded;
mod files;
mod places;

use std::path::PathBuf;

use arborist_core::failure::{Exit, Failure};

use self::{
    assets::{Asset, AssetKind},
    embedded::ASSETS,
    files::{FileChange, InstallStep, InstalledFile, Overwrite},
    places::{Layout, Surroundings},
};
use crate::{catalog::about, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Install manual pages and shell completions.

'cargo install' installs programs only. The manual pages and completions are
part of this program; this command writes them to files. Then 'git help
arborist' opens the manual, and 'git arborist <TAB>' completes commands,
options, task ids and branches in bash, zsh and fish.

If the program is in a 'bin' folder on PATH, the pages go next to it: from
~/.cargo/bin to ~/.cargo/share/man. Otherwise they go below $XDG_DATA_HOME.
Completions go to your own folder of each shell. If man or zsh does not look
there, the command prints the line to add to your shell's profile.

Run it again after an update. A file that this command did not write is not
overwritten, and no symbolic link is followed out of the folder that you
named, unless --force is given.";

const EXAMPLES: &str = "\
EXAMPLES
   Install everything for this user
       git arborist install-assets

   Install only the pages and one shell
       git arborist install-assets --only man --only zsh

   Install in a package
       git arborist install-assets --prefix \"$DESTDIR/usr\"

   See which files would be removed
       git arborist install-assets --uninstall --dry-run";

/// What was typed.
#[derive(Debug, clap::Parser)]
#[command(
    name = "git-arborist-install-assets",
    bin_name = "git arborist install-assets",
    about = about("install-assets"),
    long_about = LONG_ABOUT,
    after_help = EXAMPLES
)]
pub struct InstallAssetsArgs {
    /// Install below DIR/share, with the layout of distributions
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Install only this; can be given several times
    #[arg(long, value_name = "KIND", value_enum)]
    only: Vec<AssetKind>,
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Remove installed files that are unchanged
    #[arg(long)]
    uninstall: bool,
    /// Overwrite files that git-arborist did not install; with --uninstall, also remove files that were changed
    #[arg(short, long)]
    force: bool,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Install,
    Uninstall,
}

/// The options.
#[derive(Debug)]
struct Options {
    task: Task,
    layout: Layout,
    only: Vec<AssetKind>,
    consent: Overwrite,
    is_rehearsal: bool,
    is_quiet: bool,
}

impl From<InstallAssetsArgs> for Options {
    fn from(args: InstallAssetsArgs) -> Self {
        Self {
            task: if args.uninstall { Task::Uninstall } else { Task::Install },
            layout: match args.prefix {
                Some(prefix) => Layout::Distribution(prefix),
                None => Layout::User(Surroundings::of_process()),
            },
            only: args.only,
            consent: if args.force { Overwrite::Forced } else { Overwrite::OursOnly },
            is_rehearsal: args.dry_run,
            is_quiet: args.quiet,
        }
    }
}

impl Options {
    fn assets(&self) -> impl Iterator<Item = &'static Asset> {
        ASSETS.iter().filter(|asset| self.wants(asset.asset_folder.kind()))
    }

    fn wants(&self, kind: AssetKind) -> bool {
        self.only.is_empty() || self.only.contains(&kind)
    }

    /// All files, with what to do.
    fn plan(&self) -> Result<Vec<InstallStep>, Failure> {
        let mut steps = Vec::new();
        for asset in self.assets() {
            let mut places = self.layout.places(asset.asset_folder)?;
            if self.task == Task::Install {
                places.truncate(1);
            }
            for place in places {
                let found = InstalledFile::look(&place, asset)?;
                let change = match self.task {
                    Task::Install => found.on_install(self.consent),
                    Task::Uninstall => found.on_uninstall(self.consent),
                };
                steps.push(InstallStep { file: place.dir.join(asset.name), asset, change });
            }
        }
        Ok(steps)
    }
}

/// Runs the command.
pub fn run(args: InstallAssetsArgs, ui: &mut Ui) -> Outcome {
    let options = Options::from(args);
    let steps = options.plan()?;
    let refused: Vec<&InstallStep> =
        steps.iter().filter(|step| matches!(step.change, FileChange::Refuse(_))).collect();
    if options.task == Task::Install && !refused.is_empty() {
        return Err(in_the_way(&refused));
    }
    for step in &steps {
        if !options.is_rehearsal {
            step.apply()?;
        }
        report(ui, &options, step);
    }
    if options.task == Task::Install && !options.is_rehearsal && !options.is_quiet {
        advice::give(ui, &options.layout, &steps);
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::No })
}

fn report(ui: &mut Ui, options: &Options, step: &InstallStep) {
    let file = step.file.display();
    let line = match (step.change, options.is_rehearsal) {
        (FileChange::Refuse(why), _) => return ui.warn(&format!("kept '{file}': {why}")),
        (FileChange::Keep, _) if options.task == Task::Uninstall => return,
        (FileChange::Keep, _) => format!("unchanged   {file}"),
        (FileChange::Write, false) => format!("wrote       {file}"),
        (FileChange::Write, true) => format!("would write {file}"),
        (FileChange::Remove, false) => format!("removed      {file}"),
        (FileChange::Remove, true) => format!("would remove {file}"),
    };
    if !options.is_quiet {
        ui.line(&line);
    }
}

/// The error for files that are in the way. Nothing is written if a part would have to be left out.
fn in_the_way(refused: &[&InstallStep]) -> Failure {
    let lines = refused.iter().filter_map(|step| match step.change {
        FileChange::Refuse(why) => Some(format!("\n  '{}': {why}", step.file.display())),
        _ => None,
    });
    let lines: String = lines.collect();
    Failure::new(Exit::No, format!("nothing was written, because these files exist:{lines}"))
        .hint("move them away, select the other parts with --only, or overwrite them with --force")
}
