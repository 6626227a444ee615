//! `git arborist cleanup`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::cleanup::run)
}
