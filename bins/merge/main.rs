//! `git-arborist-merge`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::merge::run)
}
