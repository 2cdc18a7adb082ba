import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * S-Merge with Java's ConcurrentSkipListMap; what s_merge.c does, with the same tuples and the same output.
 *
 * <pre>java SkipListMerge ties|distinct|FILE INPUTS TUPLES PENDING RATE WARMUP_SECONDS</pre>
 *
 * The map does not know which tuples are ready, so the output thread looks at the latest timestamps of all inputs for
 * each tuple: a cost linear in the number of inputs. It looks there first and at the map's first entry afterwards; the
 * other way round a tuple could slip in between. Prints the seconds of one run after the warm-up, and the latency.
 */
public final class SkipListMerge {
  private record Key(long ts, int input, long position) implements Comparable<Key> {
    @Override
    public int compareTo(Key o) {
      int c = Long.compare(ts, o.ts);
      if (c == 0) c = Integer.compare(input, o.input);
      return c != 0 ? c : Long.compare(position, o.position);
    }
  }

  private static final int STRIDE = 8; // longs: neighbours in the arrays share no cache line
  private static final int TELL_EVERY = 64;

  private final int inputs;
  private final long each;
  private final long pending;
  private final double rate;
  private final long[][] ts;
  private volatile long start;
  private double waited;
  private final ConcurrentSkipListMap<Key, Long> map = new ConcurrentSkipListMap<>();
  private final AtomicLongArray latest;
  private final AtomicLongArray out;

  private SkipListMerge(String times, int inputs, long tuples, long pending, double rate) throws IOException {
    this.inputs = inputs;
    this.each = tuples / inputs;
    this.pending = pending;
    this.rate = rate;
    this.latest = new AtomicLongArray(inputs * STRIDE);
    this.out = new AtomicLongArray(inputs * STRIDE);
    this.ts = new long[inputs][(int) each];
    for (int k = 0; k < inputs; k++) latest.set(k * STRIDE, -1);
    if (times.equals("ties") || times.equals("distinct")) draw(times.equals("ties"));
    else read(times);
  }

  private void read(String file) throws IOException {
    try (FileChannel channel = FileChannel.open(Path.of(file))) {
      ByteBuffer bytes = ByteBuffer.allocate((int) (8 * each * inputs)).order(ByteOrder.nativeOrder());
      while (bytes.hasRemaining() && channel.read(bytes) >= 0) { }
      bytes.flip();
      for (int k = 0; k < inputs; k++) for (int i = 0; i < each; i++) ts[k][i] = bytes.getLong();
    }
  }

  private void draw(boolean ties) {
    for (int k = 0; k < inputs; k++) {
      long random = mix(k + 1);
      long at = 0;
      for (int i = 0; i < each; i++) {
        random = mix(random + i);
        if (!ties) at += 1 + Long.remainderUnsigned(random, 3);
        else if (Long.remainderUnsigned(random, 4) == 0) at++;
        ts[k][i] = ties ? at : at * inputs + k;
      }
    }
  }

  private static long mix(long x) {
    x ^= x >>> 30;
    x *= 0xbf58476d1ce4e5b9L;
    x ^= x >>> 27;
    x *= 0x94d049bb133111ebL;
    return x ^ (x >>> 31);
  }

  private void feed(int k) {
    long room = 0;
    for (int i = 0; i < each; i++) {
      while (i >= room) {
        room = out.get(k * STRIDE) + pending;
        if (i >= room) Thread.yield();
      }
      if (rate > 0) {
        long left = due(k, i) - System.nanoTime();
        if (left > 0) LockSupport.parkNanos(left);
      }
      map.put(new Key(ts[k][i], k, i), (long) i);
      latest.set(k * STRIDE, ts[k][i]);
    }
    latest.set(k * STRIDE, Long.MAX_VALUE);
  }

  /** When the input's i-th tuple is due. */
  private long due(int k, long i) {
    return start + (long) (1e9 * (i * inputs + k) / rate);
  }

  /** Whether (ts, input) is at or before (bound, number of the input that has it). */
  private static boolean ready(Key key, long bound, int holder) {
    return key.ts < bound || (key.ts == bound && key.input <= holder);
  }

  private void readAll() {
    long[] had = new long[inputs];
    Key last = new Key(-1, 0, 0);
    for (long left = each * inputs; left > 0; ) {
      long bound = Long.MAX_VALUE;
      int holder = inputs;
      for (int k = 0; k < inputs; k++) {
        long promise = latest.get(k * STRIDE);
        if (promise < bound) {
          bound = promise;
          holder = k;
        }
      }
      Map.Entry<Key, Long> first = map.firstEntry();
      if (first == null || !ready(first.getKey(), bound, holder)) {
        for (int k = 0; k < inputs; k++) out.set(k * STRIDE, had[k]);
        Thread.yield();
        continue;
      }
      Key key = map.pollFirstEntry().getKey();
      if (key.compareTo(last) <= 0) throw new IllegalStateException("out of order");
      last = key;
      left--;
      if (rate > 0) waited += 1e-6 * (System.nanoTime() - due(key.input, had[key.input]));
      if (++had[key.input] % TELL_EVERY == 0) out.set(key.input * STRIDE, had[key.input]);
    }
  }

  /** Seconds. */
  private double run() throws InterruptedException {
    Thread[] threads = new Thread[inputs];
    AtomicLong go = new AtomicLong();
    for (int k = 0; k < inputs; k++) {
      int me = k;
      threads[k] = new Thread(() -> {
        go.incrementAndGet();
        while (go.get() <= inputs) Thread.yield();
        feed(me);
      });
      threads[k].start();
    }
    while (go.get() < inputs) Thread.yield();
    start = System.nanoTime();
    go.incrementAndGet();
    readAll();
    double seconds = 1e-9 * (System.nanoTime() - start);
    for (Thread thread : threads) thread.join();
    return seconds;
  }

  /** Warms up with runs of the same kind, then measures one. */
  public static void main(String[] args) throws InterruptedException, IOException {
    String times = args[0];
    int inputs = Integer.parseInt(args[1]);
    long tuples = Long.parseLong(args[2]);
    long pending = Long.parseLong(args[3]);
    double rate = Double.parseDouble(args[4]);
    long until = System.nanoTime() + (long) (1e9 * Double.parseDouble(args[5]));
    do {
      new SkipListMerge(times.equals("distinct") ? times : "ties", inputs, tuples / 4, pending, 0).run();
    } while (System.nanoTime() < until);
    System.gc();
    SkipListMerge measured = new SkipListMerge(times, inputs, tuples, pending, rate);
    double seconds = measured.run();
    System.out.printf(Locale.ROOT, "%.6f %.6f%n", seconds, measured.waited / (measured.each * inputs));
  }
}
