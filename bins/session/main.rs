//! `git arborist session`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::session::run)
}
