//! `git arborist logs`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::logs::run)
}
