//! Inside a container: a system call filter around Cellblock refuses one of the calls with which
//! sandboxes are made.

use std::collections::BTreeMap;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend as _;
use cellblock_sandbox::backend::process::{ProcessBackend, ProcessConfig};
use cellblock_sandbox::error::Blame;
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection, Report};
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule,
};

use crate::support::{block_on, config, execute, shows};

/// Makes a call fail for this thread and what it starts.
fn fail(call: i64, rules: Vec<SeccompRule>, error: i32) {
    let filter = SeccompFilter::new(
        BTreeMap::from([(call, rules)]),
        SeccompAction::Allow,
        SeccompAction::Errno(error.cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    seccompiler::apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
}

/// Does what the profiles of containers do.
fn refuse(call: i64) {
    if call != libc::SYS_clone {
        return fail(call, Vec::new(), libc::EPERM);
    }
    // Its flags are in memory, where a filter cannot look.
    fail(libc::SYS_clone3, Vec::new(), libc::ENOSYS);
    let users = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    let makes_users = Condition::new(0, Len::Dword, Op::MaskedEq(users), users).unwrap();
    fail(
        call,
        vec![SeccompRule::new(vec![makes_users]).unwrap()],
        libc::EPERM,
    );
}

/// Starts a backend and runs a cell where a call is refused. Returns the report, or the error of the policy.
fn start(call: i64, demands: Demands) -> Result<Report, String> {
    let config = ProcessConfig {
        demands,
        ..block_on(config())
    };
    let filtered = std::thread::spawn(move || {
        refuse(call);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let backend = match ProcessBackend::start(&config).await {
                Ok(backend) => backend,
                Err(error) => {
                    assert_eq!(error.blame(), Blame::Policy, "{error}");
                    return Err(error.to_string());
                }
            };
            let mut lease = create(&backend, &Limits::default()).await.unwrap();
            assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
            lease.sandbox.destroy().await.unwrap();
            Ok(backend.report())
        })
    });
    filtered.join().unwrap()
}

fn is_named_and_can_be_done_without(call: i64, protection: Protection) {
    let strict = Demands([(protection, Demand::Strict)].into());
    let error = start(call, strict).unwrap_err();
    assert!(
        error.starts_with(&format!("protection `{protection}` is not available: ")),
        "{error}"
    );
    assert!(
        error.ends_with("or permit running without them (`--without-namespaces`)"),
        "{error}"
    );
    let report = start(call, Demands::without_namespaces()).unwrap();
    assert!(!report.is_active(protection));
    assert!(report.is_active(Protection::Seccomp));
}

macro_rules! refused {
    ($($test:ident: $call:ident, $protection:ident;)*) => {$(
        #[test]
        fn $test() {
            require!(UserNamespaces);
            require!(Landlock);
            is_named_and_can_be_done_without(libc::$call, Protection::$protection);
        }
    )*};
}

refused! {
    a_refused_clone_is_named_and_can_be_done_without: SYS_clone, UserNamespace;
    a_refused_setns_is_named_and_can_be_done_without: SYS_setns, UserNamespace;
    a_refused_mount_is_named_and_can_be_done_without: SYS_mount, MountNamespace;
    a_refused_umount_is_named_and_can_be_done_without: SYS_umount2, MountNamespace;
    a_refused_pivot_root_is_named_and_can_be_done_without: SYS_pivot_root, MountNamespace;
    a_refused_mount_setattr_is_named_and_can_be_done_without: SYS_mount_setattr, MountNamespace;
    a_refused_open_tree_is_named_and_can_be_done_without: SYS_open_tree, MountNamespace;
    a_refused_move_mount_is_named_and_can_be_done_without: SYS_move_mount, MountNamespace;
    a_refused_unshare_is_named_and_can_be_done_without: SYS_unshare, CgroupNamespace;
    a_refused_sethostname_is_named_and_can_be_done_without: SYS_sethostname, UtsNamespace;
}

#[test]
fn a_refused_host_name_costs_no_other_protection() {
    require!(UserNamespaces);
    let report = start(libc::SYS_sethostname, Demands::default()).unwrap();
    for protection in Protection::ALL {
        if protection == Protection::UtsNamespace {
            assert!(!report.is_active(protection));
        } else if protection.default_demand() == Demand::Strict {
            assert!(report.is_active(protection), "{protection}");
        }
    }
}
