//! `git arborist worktree`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::worktree::run)
}
