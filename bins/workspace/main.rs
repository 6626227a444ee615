//! `git arborist workspace`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::workspace::run)
}
