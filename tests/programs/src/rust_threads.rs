// A Rust program that checks its own results: std::thread, mpsc channels (unbounded, bounded, rendezvous), scoped
// threads, Mutex and Condvar, RwLock, Barrier, Once, park and unpark, thread-locals with destructors, panics caught by
// join. Its locks are futexes of its own, called through libc's syscall().
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::{Duration, Instant};

fn expect(what: &str, got: u64, want: u64) {
    println!("{} {}", what, got);
    if got != want {
        eprintln!("WRONG {}: {} instead of {}", what, got, want);
        std::process::exit(1);
    }
}

fn spawn_join() {
    let mut sum = 0;
    for round in 0..50u64 {
        let threads: Vec<_> = (0..64u64).map(|i| thread::spawn(move || round * i)).collect();
        sum += threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>();
    }
    expect("spawned", sum, (0..50).sum::<u64>() * (0..64).sum::<u64>());
}

// A prime sieve of one thread per prime, each with a channel to the next.
fn sieve() {
    let (start, mut input) = mpsc::channel::<u32>();
    let mut threads = vec![thread::spawn(move || (2..4000).for_each(|n| start.send(n).unwrap()))];
    let mut primes = 0;
    while let Ok(prime) = input.recv() {
        primes += 1;
        let (out, next) = mpsc::channel();
        threads.push(thread::spawn(move || {
            for n in input {
                if n % prime != 0 {
                    out.send(n).unwrap();
                }
            }
        }));
        input = next;
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
    expect("primes below 4000", primes, 550);
}

fn channels() {
    for bound in [0, 1, 16] {
        let (out, input) = mpsc::sync_channel::<u64>(bound);
        let senders: Vec<_> = (0..8u64)
            .map(|s| {
                let out = out.clone();
                thread::spawn(move || (0..1000).for_each(|i| out.send(s * 1000 + i).unwrap()))
            })
            .collect();
        drop(out);
        let mut last = [None; 8];
        let mut count = 0;
        for value in input {
            // In order from each sender.
            let sender = (value / 1000) as usize;
            assert!(last[sender] < Some(value));
            last[sender] = Some(value);
            count += 1;
        }
        senders.into_iter().for_each(|t| t.join().unwrap());
        expect("received", count, 8000);
    }
    let (out, input) = mpsc::channel::<u64>();
    let begin = Instant::now();
    assert_eq!(input.recv_timeout(Duration::from_millis(30)), Err(mpsc::RecvTimeoutError::Timeout));
    assert!(begin.elapsed() >= Duration::from_millis(30));
    drop(out);
    assert_eq!(input.recv_timeout(Duration::from_secs(60)), Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(begin.elapsed() < Duration::from_secs(50));
}

fn scoped() {
    let mut numbers: Vec<u64> = (0..100_000).collect();
    thread::scope(|scope| {
        for part in numbers.chunks_mut(1000) {
            scope.spawn(move || part.iter_mut().for_each(|n| *n *= 3));
        }
    });
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for part in numbers.chunks(997) {
            let sum = &sum;
            scope.spawn(move || sum.fetch_add(part.iter().sum(), Ordering::Relaxed));
        }
    });
    expect("scoped", sum.into_inner(), 3 * (0..100_000).sum::<u64>());
}

// A bounded buffer of a mutex and two conditions.
fn conditions() {
    struct Buffer {
        items: Mutex<VecDeque<u64>>,
        filled: Condvar,
        emptied: Condvar,
    }
    let buffer = Arc::new(Buffer { items: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new() });
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let b = buffer.clone();
            thread::spawn(move || {
                (0..5000)
                    .map(|_| {
                        let mut items = b.filled.wait_while(b.items.lock().unwrap(), |i| i.is_empty()).unwrap();
                        let item = items.pop_front().unwrap();
                        b.emptied.notify_one();
                        item
                    })
                    .sum::<u64>()
            })
        })
        .collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..5000 {
                    let items = buffer.items.lock().unwrap();
                    buffer.emptied.wait_while(items, |i| i.len() >= 8).unwrap().push_back(i);
                    buffer.filled.notify_one();
                }
            });
        }
    });
    expect("buffered", takers.into_iter().map(|t| t.join().unwrap()).sum(), 4 * (0..5000).sum::<u64>());

    let lock = Mutex::new(());
    let begin = Instant::now();
    let mut guard = lock.lock().unwrap();
    while begin.elapsed() < Duration::from_millis(20) {
        guard = buffer.filled.wait_timeout(guard, Duration::from_millis(20)).unwrap().0;
    }
}

fn locks() {
    let pair = RwLock::new((0u64, 0u64));
    let barrier = Barrier::new(12);
    let leaders = AtomicU64::new(0);
    let once = Once::new();
    let initialised = AtomicU64::new(0);
    thread::scope(|scope| {
        for i in 0..12 {
            let (pair, barrier, leaders, once, initialised) = (&pair, &barrier, &leaders, &once, &initialised);
            scope.spawn(move || {
                for _ in 0..200 {
                    if barrier.wait().is_leader() {
                        leaders.fetch_add(1, Ordering::Relaxed);
                    }
                    once.call_once(|| {
                        thread::sleep(Duration::from_millis(5));
                        initialised.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_eq!(initialised.load(Ordering::Relaxed), 1);
                    if i % 4 == 0 {
                        let mut both = pair.write().unwrap();
                        both.0 += 1;
                        thread::yield_now();
                        both.1 += 1;
                    } else {
                        let both = pair.read().unwrap();
                        assert_eq!(both.0, both.1);
                    }
                }
            });
        }
    });
    expect("written", pair.read().unwrap().0, 3 * 200);
    expect("leaders", leaders.into_inner(), 200);
}

fn parking() {
    // Each wakes the next; a token may come before its park.
    const ROUNDS: u64 = 5000;
    let turn = Arc::new(AtomicU64::new(0));
    let main = thread::current();
    let t = turn.clone();
    let other = thread::spawn(move || {
        while t.load(Ordering::Acquire) < 2 * ROUNDS {
            if t.load(Ordering::Acquire) % 2 == 1 {
                t.fetch_add(1, Ordering::Release);
                main.unpark();
            } else {
                thread::park();
            }
        }
    });
    while turn.load(Ordering::Acquire) < 2 * ROUNDS {
        if turn.load(Ordering::Acquire) % 2 == 0 {
            turn.fetch_add(1, Ordering::Release);
            other.thread().unpark();
        } else {
            thread::park();
        }
    }
    other.thread().unpark();
    other.join().unwrap();
    expect("turns", turn.load(Ordering::Relaxed), 2 * ROUNDS);
    thread::current().unpark();
    thread::park_timeout(Duration::from_secs(100));
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(20) {
        thread::park_timeout(Duration::from_millis(20));
    }
}

static DROPPED: AtomicU64 = AtomicU64::new(0);
struct Counted(u64);
impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::Relaxed);
    }
}
thread_local! {
    static MINE: RefCell<Counted> = RefCell::new(Counted(0));
}

fn locals_and_panics() {
    std::panic::set_hook(Box::new(|_| ()));
    let poisoned = Arc::new(Mutex::new(0));
    let mut caught = 0;
    for i in 0..200u64 {
        let p = poisoned.clone();
        let thread = thread::Builder::new().name(format!("thread {}", i)).stack_size(64 * 1024).spawn(move || {
            MINE.with(|mine| mine.borrow_mut().0 += i);
            assert_eq!(thread::current().name(), Some(&*format!("thread {}", i)));
            if i % 2 == 1 {
                let _guard = p.lock();
                panic!("{}", i);
            }
        });
        if let Err(reason) = thread.unwrap().join() {
            assert_eq!(*reason.downcast::<String>().unwrap(), i.to_string());
            caught += 1;
        }
    }
    let _ = std::panic::take_hook();
    expect("panics", caught, 100);
    expect("thread-local values dropped", DROPPED.load(Ordering::Relaxed), (0..200).sum());
    assert!(poisoned.is_poisoned());
}

// Threads that never give way by themselves: others must run all the same.
fn computing() {
    let stop = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(rounds.into_inner() > 0);
}

fn main() {
    spawn_join();
    sieve();
    channels();
    scoped();
    conditions();
    locks();
    parking();
    locals_and_panics();
    computing();
}
