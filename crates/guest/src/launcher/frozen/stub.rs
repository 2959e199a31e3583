//! The last code of a process that becomes a frozen one: a table of system calls, and the loop that
//! makes them after all other code and every stack are gone.

use std::arch::global_asm;

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};

use super::manifest::ThreadState;

/// Address of the loader in every process, which is far from where Linux places anything.
pub(super) const LOADER: u64 = 0x10_0000_0000;
/// Size of the loader.
pub(super) const LOADER_SIZE: u64 = 4 << 20;
/// Start and length of the loader, which the thawed template unmaps.
pub(in crate::launcher) const LOADER_RANGE: [u64; 2] = [LOADER, LOADER_SIZE];
const PAGE: u64 = 4096;
/// Range for the mappings of Linux itself while everything else goes.
pub(super) const PARKING: u64 = LOADER + PAGE;
pub(super) const PARKING_SIZE: u64 = 64 * PAGE;
const TABLE: u64 = PARKING + PARKING_SIZE;
/// Results that are not compared.
pub(super) const ANY: u64 = u64::MAX;
/// Number of an entry that stores 32 bits at an address.
const STORE: u64 = u64::MAX - 1;
/// Number of the last entry, whose argument is the signal frame.
const RETURN: u64 = u64::MAX;

global_asm!(
    ".pushsection .text.cellblock_thaw, \"ax\", @progbits",
    ".globl cellblock_thaw_begin",
    "cellblock_thaw_begin:",
    "mov rbx, rdi",
    "2:",
    "mov rax, [rbx]",
    "cmp rax, -1",
    "je 4f",
    "cmp rax, -2",
    "je 3f",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "mov r9, [rbx + 48]",
    "syscall",
    "mov rcx, [rbx + 56]",
    "cmp rcx, -1",
    "je 5f",
    "cmp rax, rcx",
    "jne 6f",
    "5:",
    "add rbx, 64",
    "jmp 2b",
    "3:",
    "mov rax, [rbx + 8]",
    "mov ecx, [rbx + 16]",
    "mov [rax], ecx",
    "jmp 5b",
    "4:",
    "mov rsp, [rbx + 8]",
    "mov eax, 15",
    "syscall",
    // The number of the failed call is the exit status.
    "6:",
    "mov rdi, [rbx]",
    "mov eax, 231",
    "syscall",
    "ud2",
    ".globl cellblock_thaw_end",
    "cellblock_thaw_end:",
    ".popsection",
);

// SAFETY: both symbols are those of the assembly above; only their addresses are used.
unsafe extern "C" {
    static cellblock_thaw_begin: u8;
    static cellblock_thaw_end: u8;
}

/// The table, and the data that its calls need, at the addresses that they will have.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    calls: Vec<[u64; 8]>,
    data: Vec<u64>,
}

impl CallTable {
    /// Adds a call with the result that it must have.
    pub(super) fn call(&mut self, number: i64, arguments: [u64; 6], result: u64) {
        let [one, two, three, four, five, six] = arguments;
        let number = number.cast_unsigned();
        self.calls
            .push([number, one, two, three, four, five, six, result]);
    }

    /// Stores a number.
    pub(super) fn store(&mut self, at: u64, value: u32) {
        self.calls.push([STORE, at, value.into(), 0, 0, 0, 0, ANY]);
    }

    /// Keeps data for a call; returns its address.
    pub(super) fn keep(&mut self, words: &[u64]) -> u64 {
        // Linux wants some of it aligned.
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        let at = TABLE + self.data.len() as u64 * 8;
        self.data.extend(words);
        at
    }

    /// Adds the return to a thread's state.
    pub(super) fn finish(&mut self, thread: &ThreadState) {
        const DISABLED: u64 = 2;
        // Code and stack segments of 64-bit programs.
        const SEGMENTS: u64 = 0x2b << 48 | 0x33;
        let extended = self.keep(&thread.extended);
        // `struct ucontext`: flags, link, alternative stack, `struct sigcontext`, mask.
        let mut frame = vec![0, 0, 0, DISABLED, 0];
        frame.extend(&thread.registers);
        frame.extend([SEGMENTS, 0, 0, 0, 0, extended]);
        frame.extend([0; 8]);
        frame.push(thread.blocked);
        let at = self.keep(&frame);
        self.calls.push([RETURN, at, 0, 0, 0, 0, 0, ANY]);
    }

    /// Makes the calls; returns only if they could not begin.
    pub(super) fn run(mut self) -> Error {
        let first = self.keep(&[]);
        let words = self.data.len() + self.calls.len() * 8;
        if words as u64 * 8 > LOADER + LOADER_SIZE - TABLE {
            return Error::Child("the frozen template has too many mappings".into());
        }
        self.data.extend(self.calls.iter().flatten());
        match self.start(first) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    fn start(&self, first: u64) -> Result<std::convert::Infallible> {
        let begin = &raw const cellblock_thaw_begin;
        let end = &raw const cellblock_thaw_end;
        let base = std::ptr::without_provenance_mut::<libc::c_void>(address(LOADER));
        let table = std::ptr::without_provenance_mut::<u64>(address(TABLE));
        // SAFETY: the mapping replaces none. It has space for the code, which is smaller than a page
        // and lies between the two symbols, and for the data, as `run` has checked.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let mapped = libc::mmap(base, address(LOADER_SIZE), protection, flags, -1, 0);
            if mapped != base {
                return Err(std::io::Error::last_os_error()).during("map the loader");
            }
            let length = end.byte_offset_from(begin).unsigned_abs();
            std::ptr::copy_nonoverlapping(begin, base.cast::<u8>(), length);
            std::ptr::copy_nonoverlapping(self.data.as_ptr(), table, self.data.len());
            if libc::mprotect(base, address(PAGE), libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(std::io::Error::last_os_error()).during("map the loader");
            }
        }
        // SAFETY: the code at this address is the loop above, which takes the table's address, uses
        // no stack, and never returns. This process has no other thread.
        unsafe {
            let begin: extern "C" fn(u64) -> ! = std::mem::transmute(base);
            begin(first)
        }
    }
}

fn address(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}
