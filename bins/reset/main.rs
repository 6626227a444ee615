//! `git arborist reset`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::reset::run)
}
