//! `git arborist garden`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::garden::run)
}
