//! A stopped process: its registers, its memory, and the system calls that it is made to execute.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};
use cellblock_protocol::Obstacle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{CHANNEL, MoveResult, Process};

pub(in crate::launcher) type Registers = libc::user_regs_struct;

/// Maximum time for a process to become idle.
const IDLE_LIMIT: Duration = Duration::from_secs(15);
/// Pause before looking again.
const PAUSE: Duration = Duration::from_micros(200);
/// Offset of the thread's id from the address of the C library's thread, as in `rescue/clone.py`.
const THREAD_ID: u64 = 0x2d0;
/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Number of the spare channel of a fresh kernel.
const SPARE: u32 = 4;
/// `linux/elf.h`; the area of the extended registers.
const NT_X86_XSTATE: usize = 0x202;
/// Larger than the extended registers of any processor.
const XSTATE: usize = 64 * 1024;

/// A process that is traced.
#[derive(Debug)]
pub(in crate::launcher) struct Tracee {
    pub(in crate::launcher) pid: i32,
    pub(in crate::launcher) memory: File,
    registers: Option<Registers>,
}

impl Tracee {
    /// Begins to trace a process. With `kill` it ends if this process ends before it [lets go](Self::let_go).
    pub(in crate::launcher) fn seize(process: &Process, kill: bool) -> Result<Self> {
        let pid = process.pid;
        let kills = if kill { libc::PTRACE_O_EXITKILL } else { 0 };
        let options = usize::try_from(libc::PTRACE_O_TRACESYSGOOD | kills).unwrap_or_default();
        let path = format!("/proc/{pid}/mem");
        // SAFETY: the call takes two numbers.
        unsafe { ptrace(libc::PTRACE_SEIZE, pid, 0, options) }.during("trace a kernel")?;
        // A process that is traced keeps its pid. This one has lived until now, so nobody else had
        // it meanwhile.
        let mut ended = [PollFd::new(&process.pidfd, PollFlags::IN)];
        if poll(&mut ended, Some(&Timespec::default())).during("look at a kernel")? > 0 {
            return Err(Error::Child("a kernel ended before it was moved".into()));
        }
        let memory = File::options().read(true).write(kill).open(&path);
        Ok(Self {
            pid,
            memory: memory.during_on("open", &path)?,
            registers: None,
        })
    }

    /// Stops it while it waits for a message on a socket, without other threads. A fresh kernel
    /// that still rehearses has one.
    pub(in crate::launcher) fn stop_on(mut self, socket: u32) -> MoveResult<(Self, Registers)> {
        let end = Instant::now() + IDLE_LIMIT;
        loop {
            // SAFETY: the call takes no pointers.
            unsafe { ptrace(libc::PTRACE_INTERRUPT, self.pid, 0, 0) }.during("stop a kernel")?;
            self.wait()?;
            let registers = self.read_registers()?;
            if self.waits_on(&registers, socket) && self.status("Threads:")? == Some(1) {
                self.registers = Some(registers);
                return Ok((self, registers));
            }
            if Instant::now() > end {
                return Err(Obstacle::BusyKernel.into());
            }
            // SAFETY: the call takes two numbers.
            unsafe { ptrace(libc::PTRACE_CONT, self.pid, 0, 0) }.during("continue a kernel")?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns whether it is in a `poll` of this one descriptor, without a timeout.
    fn waits_on(&self, registers: &Registers, socket: u32) -> bool {
        let (mut before, mut polled) = ([0; 2], [0; 4]);
        let read = |part: &mut [u8], at| self.memory.read_exact_at(part, at).is_ok();
        (-516..=-512).contains(&registers.rax.cast_signed())
            && registers.orig_rax.cast_signed() == libc::SYS_poll
            && registers.rsi == 1
            && registers.rdx & 0xffff_ffff == 0xffff_ffff
            && read(&mut before, registers.rip.wrapping_sub(2))
            && read(&mut polled, registers.rdi)
            && before == SYSCALL
            && u32::from_ne_bytes(polled) == socket
    }

    /// Waits for its next stop, and returns the signal.
    fn wait(&self) -> Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: waitpid writes one int, into one of our locals.
            if unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) } >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error).during("wait for a kernel");
            }
        }
        if libc::WIFSTOPPED(status) {
            Ok(libc::WSTOPSIG(status))
        } else {
            Err(Error::Child("a kernel ended while it was moved".into()))
        }
    }

    fn read_registers(&self) -> Result<Registers> {
        // SAFETY: the structure consists of integers, for which zero is a value.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        // SAFETY: the call fills the structure, which is one of our locals.
        unsafe { ptrace(libc::PTRACE_GETREGS, self.pid, 0, &raw mut registers as usize) }
            .during("read registers")?;
        Ok(registers)
    }

    fn write_registers(&self, registers: &Registers) -> Result<()> {
        // SAFETY: the call reads the structure, which outlives it.
        unsafe {
            ptrace(
                libc::PTRACE_SETREGS,
                self.pid,
                0,
                std::ptr::from_ref(registers) as usize,
            )
        }
        .during("write registers")
    }

    /// Lets it execute a system call, below its own filters.
    pub(in crate::launcher) fn call(&self, number: i64, arguments: [u64; 6]) -> Result<Result<u64, i32>> {
        let Some(mut registers) = self.registers else {
            return Err(Error::Child("the kernel is not stopped".into()));
        };
        registers.rip -= 2;
        registers.orig_rax = u64::MAX;
        registers.rax = number.cast_unsigned();
        let [one, two, three, four, five, six] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (one, two, three);
        (registers.r10, registers.r8, registers.r9) = (four, five, six);
        self.write_registers(&registers)?;
        for _ in ["entry", "exit"] {
            // SAFETY: the call takes two numbers.
            unsafe { ptrace(libc::PTRACE_SYSCALL, self.pid, 0, 0) }.during("make a kernel call Linux")?;
            if self.wait()? != libc::SIGTRAP | 0x80 {
                return Err(Error::Child("a kernel got a signal while it was moved".into()));
            }
        }
        let result = self.read_registers()?.rax.cast_signed();
        Ok(match result {
            -4095..=-1 => Err(i32::try_from(-result).unwrap_or(libc::EINVAL)),
            result => Ok(result.cast_unsigned()),
        })
    }

    /// The same for a call that must succeed.
    pub(in crate::launcher) fn must(
        &self,
        action: &'static str,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<u64> {
        let result = self.call(number, arguments)?;
        result.map_err(io::Error::from_raw_os_error).during(action)
    }

    /// Reads memory. Through its file, because `process_vm_readv` makes Linux copy a page first
    /// that the process shares with another.
    pub(in crate::launcher) fn read(&self, at: u64, content: &mut [u8]) -> Result<()> {
        self.memory.read_exact_at(content, at).during("read memory")
    }

    /// Writes memory, whatever the process itself may do with it.
    pub(in crate::launcher) fn write(&self, at: u64, content: &[u8]) -> Result<()> {
        let length = content.len();
        let here = libc::iovec {
            iov_base: content.as_ptr().cast_mut().cast(),
            iov_len: length,
        };
        let there = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(usize::try_from(at).unwrap_or_default()),
            iov_len: length,
        };
        // SAFETY: the call reads the bytes of `content`, which outlives it. Linux checks the
        // addresses of the other process.
        let written =
            unsafe { libc::process_vm_writev(self.pid, &raw const here, 1, &raw const there, 1, 0) };
        if usize::try_from(written) == Ok(length) {
            return Ok(());
        }
        // Only its file leads to memory that the process itself cannot write; on that way, Linux
        // copies everything twice.
        let written = self.memory.write_all_at(content, at);
        written.during("write memory (is it larger than the limit of the sandbox?)")
    }

    /// Lets Linux back untouched memory by a large page, if it has them: that is one fault, and not hundreds.
    pub(in crate::launcher) fn back_by_large_page(&self, at: u64, length: usize) -> Result<()> {
        let advice = u64::from(libc::MADV_HUGEPAGE.cast_unsigned());
        let _unavailable = self.call(libc::SYS_madvise, [at, length as u64, advice, 0, 0, 0])?;
        Ok(())
    }

    /// Returns how many filters of system calls it has.
    pub(in crate::launcher) fn filters(&self) -> Result<Option<u32>> {
        self.status("Seccomp_filters:")
    }

    /// Returns a number of its status.
    fn status(&self, name: &str) -> Result<Option<u32>> {
        let path = format!("/proc/{}/status", self.pid);
        let status = std::fs::read_to_string(&path).during_on("read", &path)?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.and_then(|number| number.trim().parse().ok()))
    }

    /// Checks that the C library keeps the id of the thread where it is expected.
    pub(in crate::launcher) fn check_thread_id(&self, registers: &Registers, inside: u32) -> MoveResult<()> {
        let mut id = [0; 4];
        let read = self
            .memory
            .read_exact_at(&mut id, registers.fs_base.wrapping_add(THREAD_ID));
        if read.is_ok() && u32::from_ne_bytes(id) == inside {
            Ok(())
        } else {
            Err(Obstacle::UnknownLibrary.into())
        }
    }

    /// Sets that id.
    pub(in crate::launcher) fn set_thread_id(&self, registers: &Registers, inside: u32) -> Result<()> {
        let place = registers.fs_base.wrapping_add(THREAD_ID);
        let written = self.memory.write_all_at(&inside.to_ne_bytes(), place);
        written.during("write the id of a thread")
    }

    /// Makes its channel, which is the only way to it, the socket of the copy.
    pub(in crate::launcher) fn place_socket(&self, number: u32) -> MoveResult<()> {
        let (channel, spare) = (u64::from(CHANNEL), u64::from(SPARE));
        let wanted = u64::from(number);
        if wanted <= 2 {
            return Err(Obstacle::UnusualSocket.into());
        }
        let close = |number| self.must("close a channel", libc::SYS_close, [number, 0, 0, 0, 0, 0]);
        if wanted != channel {
            let flags = u64::from(libc::O_CLOEXEC.cast_unsigned());
            self.must(
                "place a channel",
                libc::SYS_dup3,
                [channel, wanted, flags, 0, 0, 0],
            )?;
            close(channel)?;
        }
        if wanted != spare {
            close(spare)?;
        }
        Ok(())
    }

    /// Gives it the registers and the signal mask of the copy, with which it begins the system call
    /// again in which the copy waits.
    pub(in crate::launcher) fn become_copy_of(&self, copy: &Self, registers: &Registers) -> Result<()> {
        let mut extended = copy.read_extended()?;
        let mut part = libc::iovec {
            iov_base: extended.as_mut_ptr().cast(),
            iov_len: extended.len() * 8,
        };
        // SAFETY: the call reads that much.
        unsafe {
            ptrace(
                libc::PTRACE_SETREGSET,
                self.pid,
                NT_X86_XSTATE,
                &raw mut part as usize,
            )
        }
        .during("write extended registers")?;
        let mut mask = copy.read_mask()?;
        // SAFETY: the call reads 8 bytes, one of our locals.
        unsafe { ptrace(libc::PTRACE_SETSIGMASK, self.pid, 8, &raw mut mask as usize) }
            .during("write a signal mask")?;
        let again = Registers {
            rip: registers.rip - 2,
            rax: registers.orig_rax,
            orig_rax: u64::MAX,
            ..*registers
        };
        self.write_registers(&again)
    }

    /// Reads the registers that are not general ones, in the form of `xsave`.
    pub(in crate::launcher) fn read_extended(&self) -> Result<Vec<u64>> {
        let mut extended = vec![0_u64; XSTATE / 8];
        let mut part = libc::iovec {
            iov_base: extended.as_mut_ptr().cast(),
            iov_len: XSTATE,
        };
        // SAFETY: the call fills at most the length that the vector has, and stores how much it was.
        unsafe {
            ptrace(
                libc::PTRACE_GETREGSET,
                self.pid,
                NT_X86_XSTATE,
                &raw mut part as usize,
            )
        }
        .during("read extended registers")?;
        extended.truncate(part.iov_len / 8);
        Ok(extended)
    }

    /// Reads the mask of blocked signals.
    pub(in crate::launcher) fn read_mask(&self) -> Result<u64> {
        let mut mask = 0_u64;
        // SAFETY: the call fills 8 bytes, one of our locals.
        unsafe { ptrace(libc::PTRACE_GETSIGMASK, self.pid, 8, &raw mut mask as usize) }
            .during("read a signal mask")?;
        Ok(mask)
    }

    /// Returns the address and length of its list of robust locks.
    pub(in crate::launcher) fn robust_list(&self) -> Result<(u64, u64)> {
        let (mut list, mut length) = (0_u64, 0_u64);
        // SAFETY: the call fills two of our locals.
        let read = unsafe {
            libc::syscall(
                libc::SYS_get_robust_list,
                self.pid,
                &raw mut list,
                &raw mut length,
            )
        };
        if read == 0 {
            return Ok((list, length));
        }
        Err(io::Error::last_os_error()).during("read the list of robust locks")
    }

    /// Returns the address, length and signature of its area of restartable sequences; zeros if it has
    /// none.
    pub(in crate::launcher) fn restartable(&self) -> Result<(u64, u32, u32)> {
        /// `linux/ptrace.h`
        const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
        let mut found = [0_u32; 6];
        // SAFETY: the call fills at most the length that it is given, that of one of our locals.
        unsafe {
            ptrace(
                GET_RSEQ_CONFIGURATION,
                self.pid,
                size_of_val(&found),
                &raw mut found as usize,
            )
        }
        .during("read restartable sequences")?;
        let [low, high, length, signature, ..] = found;
        Ok((u64::from(low) | u64::from(high) << 32, length, signature))
    }

    /// Returns where the C library keeps the id of the thread.
    pub(in crate::launcher) const fn thread_id_at(registers: &Registers) -> u64 {
        registers.fs_base.wrapping_add(THREAD_ID)
    }

    /// Lets it continue.
    pub(in crate::launcher) fn let_go(self) {
        // SAFETY: the call takes two numbers. A process that has ended is not traced any more.
        let _ = unsafe { ptrace(libc::PTRACE_DETACH, self.pid, 0, 0) };
    }
}

/// # Safety
///
/// What `argument` and `number` mean depends on the request; a pointer must be valid for it.
unsafe fn ptrace(request: libc::c_uint, pid: i32, number: usize, argument: usize) -> io::Result<()> {
    // SAFETY: as promised by the caller.
    let result = unsafe { libc::ptrace(request, pid, number, argument) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
