//! `git arborist init`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::init::run)
}
