//! `git arborist tools`.

mod service;

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(service::run)
}
