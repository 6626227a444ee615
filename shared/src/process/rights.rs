//! What a child may do if root starts it.

/// Rights that root keeps: without the last one the kernel refuses root's user namespaces, which sandboxes of programs need,
/// and without the others it could not work in a checkout of another user. None of them allows it to mount anything, to
/// make devices, or to trace, inspect or signal processes of others.
pub(super) const KEPT_BY_ROOT: [&str; 8] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
];

/// Takes all other rights away from every program that the calling thread starts from now on. Only root has them.
#[cfg(target_os = "linux")]
pub(super) fn drop_rights_of_root() {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    };

    if !rustix::process::geteuid().is_root() {
        return;
    }
    let is_kept = |name: &str| KEPT_BY_ROOT.iter().any(|kept| kept.strip_prefix("CAP_") == Some(name));
    let mut dropped = CapabilitySet::empty();
    for (_, right) in CapabilitySet::all().iter_names().filter(|(name, _)| !is_kept(name)) {
        // A container may have taken it away, and the right to do that as well.
        let _ = remove_capability_from_bounding_set(right);
        dropped |= right;
    }
    // A program of root also gets what is inheritable, whatever the bounding set says.
    if let Ok(sets) = capabilities(None) {
        let inheritable = sets.inheritable - dropped;
        let _ = set_capabilities(None, CapabilitySets { inheritable, ..sets });
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn drop_rights_of_root() {}
