//! The ways to confine child processes that work on this machine, and runs of two tasks for tests of them.

use arborist_core::process::ConfinementBackend;
use arborist_testkit::TestRepo;

/// The modes of the backends that work here.
pub(crate) fn working_modes() -> Vec<&'static str> {
    let all = [("landlock", ConfinementBackend::Landlock), ("bwrap", ConfinementBackend::Bwrap)];
    let works = |(mode, backend): &(&str, ConfinementBackend)| {
        if !backend.works() {
            println!("skipped: {mode} does not work here");
        }
        backend.works()
    };
    all.into_iter().filter(works).map(|(mode, _)| mode).collect()
}

/// Whether bubblewrap works here.
pub(crate) fn has_bwrap() -> bool {
    working_modes().contains(&"bwrap")
}

/// An agent that runs `script` in each call, then approves or writes a file.
pub(crate) fn agent(script: &str) -> String {
    format!(
        "{script}\ncase \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac\n"
    )
}

/// Two tasks at once for such an agent.
pub(crate) fn repo(script: &str) -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", &agent(script))
}
