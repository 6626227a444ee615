//! How a hook goes, and everything is as it was before.

use arborist_core::git::Reach;

use super::{Plan, Step};
use crate::hooks::{
    block,
    site::Site,
    spot::{Content, Spot},
};

/// How to remove a hook wherever it stands. What somebody changed is left.
pub(in crate::hooks) fn plan_uninstall(site: &Site) -> Plan {
    let mut plan = Plan::new(site.event, Vec::new());
    let section = site.event.config_section();
    match site.config {
        Content::Ours(_) => {
            plan.steps
                .extend(["command", "event"].map(|key| Step::Unset { key: format!("{section}.{key}") }));
        }
        Content::Edited => plan.left.push(format!("'{section}.command' was edited")),
        Content::Absent | Content::Foreign => {}
    }
    if site.dir.reach != Reach::Outside {
        match &site.husky {
            Some(file) => remove_block(&mut plan, file),
            None => remove_script(&mut plan, &site.script, &site.kept),
        }
        plan.steps.extend(site.moved.iter().map(|moved| Step::Remove { path: moved.path.clone() }));
    }
    if let Some((script, kept)) = &site.elsewhere {
        remove_script(&mut plan, script, kept);
    }
    plan
}

fn remove_block(plan: &mut Plan, file: &Spot) {
    match (&file.content, &file.bytes) {
        (Content::Ours(binary), Some(bytes)) => {
            let path = file.path.clone();
            plan.steps.push(match block::remove(bytes, &plan.event.block(binary)) {
                Some(bytes) => Step::Edit { path, bytes },
                None => Step::Remove { path },
            });
        }
        (Content::Edited, _) => plan.left.push(format!("our lines in '{}' were edited", file.path.display())),
        _ => {}
    }
}

fn remove_script(plan: &mut Plan, script: &Spot, kept: &Spot) {
    let restore = Step::Restore { from: kept.path.clone(), to: script.path.clone() };
    match script.content {
        Content::Ours(_) | Content::Absent if kept.bytes.is_some() => plan.steps.push(restore),
        Content::Ours(_) => plan.steps.push(Step::Remove { path: script.path.clone() }),
        Content::Edited => plan.left.push(format!("'{}' was edited", script.path.display())),
        // A manager wrote its hook anew, so what we moved aside is only a copy of it.
        Content::Foreign if kept.bytes.is_some() && kept.bytes == script.bytes => {
            plan.steps.push(Step::Remove { path: kept.path.clone() });
        }
        Content::Foreign if kept.bytes.is_some() => plan.left.push(format!(
            "'{}' is not ours; the hook of before is still in '{}'",
            script.path.display(),
            kept.path.display()
        )),
        Content::Absent | Content::Foreign => {}
    }
}
