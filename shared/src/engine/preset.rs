//! The engines that need no configuration.

/// A built-in engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnginePreset {
    pub(super) name: &'static str,
    pub(super) submit: &'static str,
    pub(super) alive: &'static str,
    pub(super) cancel: &'static str,
    /// The command that lists the parts of a job, each with its own log.
    pub(super) jobs: Option<&'static str>,
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
            // Slurm forgets a job some minutes after its end. Then only its logs tell which tasks it had.
            jobs: Some(
                "if tasks=$(squeue --noheader --array --states=all --format='%i %T' --jobs={job} 2>/dev/null); then
  echo \"$tasks\" | sed -e '/ PENDING$/d' -e 's/ .*//'
else
  for log in {dir}/*/{job}_*.log; do if [ -f \"$log\" ]; then basename \"$log\" .log; fi; done
fi",
            ),
            // The home folder may not be shared with the nodes: then the log is read by a step of the job, or if that
            // has ended, by a job at the same node.
            logs: "sh -c {command} 2>/dev/null && exit
found=$(squeue --noheader --states=all --format='%A %T %P %N' --jobs={job}) || exit
set -- $found
case \"$#$2\" in
4RUNNING|4SUSPENDED) set -- --jobid=\"$1\" --overlap ;;
4*) set -- --partition=\"$3\" --nodelist=\"$4\" --immediate=30 --job-name=logs ;;
3PENDING) echo 'the job has not begun' >&2; exit 1 ;;
*) echo 'its log is not on this machine, and Slurm no longer knows where the job has run' >&2; exit 1 ;;
esac
exec srun --quiet \"$@\" --nodes=1 --ntasks=1 --mpi=none --input=none --chdir=/ sh -c {command}",
            manifest: None,
            job: "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}",
            writes_log: true,
        },
        Self {
            name: "ssh",
            submit: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} {command}",
            alive: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} 'state=$(ps -o stat= -p {job}); case $?$state in 1|0Z*) echo gone ;; 0*) echo alive ;; esac'",
            cancel: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} 'kill {job}'",
            jobs: None,
            logs: "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15 -- {place} {command}",
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
            jobs: Some(
                "job={job}
kubectl get pods --selector=\"job-name=${job##*/}\" --no-headers --output=custom-columns=:metadata.name",
            ),
            logs: "kubectl logs --tail=100000 {job}",
            manifest: Some(".arborist/engines/kubernetes.yaml"),
            job: "$HOSTNAME",
            writes_log: false,
        },
    ];
}
