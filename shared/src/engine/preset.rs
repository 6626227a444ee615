//! The engines that need no configuration.

/// A built-in engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnginePreset {
    pub(super) name: &'static str,
    pub(super) submit: &'static str,
    pub(super) alive: &'static str,
    pub(super) cancel: &'static str,
    pub(super) logs: &'static str,
    /// The file that is filled in and passed to `submit` instead of the worker's script.
    pub(super) manifest: Option<&'static str>,
    /// The name of a worker's job, as a shell word.
    pub(super) job: &'static str,
    /// Whether a worker writes its output to a file beside its clone.
    pub(super) writes_log: bool,
}

/// The file of the kubernetes engine, as it is written on first use.
pub(super) const KUBERNETES: &str = include_str!("kubernetes.yaml");

/// The image that has to be replaced in it.
pub(super) const NO_IMAGE: &str = "registry.example.com/";

impl EnginePreset {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|preset| preset.name == name)
    }

    pub(super) const ALL: &[Self] = &[
        Self {
            name: "slurm",
            submit: "sbatch --parsable --requeue --array=1-{workers} --job-name={name} --output=/dev/null",
            // A job that waits in the queue again has lost its process. An error means that nothing is known, except
            // for the answer that there is no such job.
            alive: "state=$(squeue --noheader --states=all --format=%T --jobs={job} 2>&1); code=$?
case \"$code $state\" in
'0 RUNNING'|'0 COMPLETING'|'0 SUSPENDED'|'0 STOPPED'|'0 CONFIGURING'|'0 SIGNALING') echo alive ;;
0*|*'Invalid job id'*) echo gone ;;
esac",
            cancel: "scancel {job}",
            logs: "tail -n 20 {dir}/*.log",
            manifest: None,
            job: "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}",
            writes_log: true,
        },
        Self {
            name: "ssh",
            submit: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} {command}",
            alive: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} 'state=$(ps -o stat= -p {job}); case $?$state in 1|0Z*) echo gone ;; 0*) echo alive ;; esac'",
            cancel: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} 'kill {job}'",
            logs: "ssh {place} 'tail -n 20 {dir}/*.log'",
            manifest: None,
            job: "$$",
            writes_log: true,
        },
        Self {
            name: "kubernetes",
            submit: "kubectl create --output=name --filename=-",
            alive: "phase=$(kubectl get pod {job} --ignore-not-found --output='jsonpath={.status.phase}') && case $phase in
''|Succeeded|Failed) echo gone ;;
*) echo alive ;;
esac",
            cancel: "kubectl delete {job}",
            logs: "kubectl logs --prefix --tail=20 --selector=job-name={name}",
            manifest: Some(".arborist/engines/kubernetes.yaml"),
            job: "$HOSTNAME",
            writes_log: false,
        },
    ];
}
