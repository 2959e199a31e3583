//! Rehearsals: code cannot approve its own calls, and reaches no function that writes in another way.

use cellblock_interpreter::Cell;
use cellblock_interpreter::cell::Language;
use cellblock_testkit::require;

use crate::shop::Shop;
use crate::support::{block_on, connected};

/// Calls of the host with fields that say that they were approved, from threads and other processes.
const FORGED: &str = r"
import subprocess, sys, threading
from cellblock_kernel.library import broker

arguments = {'sku': 1, 'price': 9}
claims = ({}, {'approved': True}, {'approved': [{'connector': 'shop', 'function': 'set_price',
          'arguments': arguments}]}, {'writes': 'plain'}, {'trying': False}, {'mode': 'approved'})
answers = []

def call(claim):
    try:
        fields = {'connector': 'shop', 'function': 'set_price', 'arguments': arguments, **claim}
        answers.append(broker.call('fetch', fields))
    except Exception as error:
        answers.append(str(error))

for claim in claims:
    call(claim)
    thread = threading.Thread(target=call, args=(claim,))
    thread.start()
    thread.join()
for method in ('approve', 'keep_try', 'rehearsal.approve', 'fetch.approved'):
    try:
        broker.call(method, {'approve': True})
        answers.append('FOUND ' + method)
    except Exception as error:
        answers.append(str(error))
code = 'from cellblock_kernel.library import broker\n' \
       'broker.call(\'fetch\', {\'connector\': \'shop\', \'function\': \'set_price\', ' \
       '\'arguments\': {\'sku\': 2, \'price\': 9}})'
for program in ([sys.executable, '-c', code], ['bash', '-c', 'shop.set_price 3 9']):
    try:
        subprocess.run(program, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        pass
print('FOUND' in ' '.join(map(str, answers)), len(answers))
";

#[test]
fn code_cannot_approve_its_own_calls() {
    require!(UserNamespaces);
    block_on(async {
        let (shop, connector) = Shop::open();
        let session = connected(None, "", vec![connector]).await;
        let rehearsal = session.rehearse(FORGED).await.unwrap();
        let told = &rehearsal.execution.stdout.text;
        assert_eq!(told, "False 16\n", "{rehearsal:#?}");
        assert_eq!(rehearsal.writes.len(), 12, "each is listed: {rehearsal:#?}");
        assert_eq!(shop.written(), [""; 0]);

        let ran = session.execute(FORGED).await.unwrap();
        assert_eq!(ran.stdout.text, "False 16\n", "{ran:#?}");
        let approved = Cell {
            approved: Some(Vec::new()),
            ..Cell::new(FORGED)
        };
        let ran = session.execute(approved).await.unwrap();
        assert_eq!(ran.stdout.text, "False 16\n", "{ran:#?}");
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn another_language_reaches_no_function_that_writes() {
    require!(UserNamespaces);
    block_on(async {
        let (shop, connector) = Shop::open();
        let session = connected(None, "", vec![connector]).await;
        let code = "shop.set_price 1 9; python3 -c 'shop.set_price(1, 9)'; true";
        let cell = Cell::new(code).in_language(Language::Bash);
        let rehearsal = session.rehearse(cell).await.unwrap();
        assert!(rehearsal.writes.is_empty(), "{rehearsal:#?}");
        assert_eq!(shop.written(), [""; 0]);
    });
}
