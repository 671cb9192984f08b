import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.ProcessorWrapper;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.WrappedFixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.WrappedProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** Counts how often each step is called, as the processor wrapper of a topology (KIP-1112). */
public final class CallCounter implements ProcessorWrapper {
    /** The calls by the name of the step, 0 for one that was never called. */
    static final Map<String, Long> CALLS = new TreeMap<>();

    private static void count(String step, long calls) {
        CALLS.merge(step, calls, Long::sum);
    }

    @Override
    public <KIn, VIn, KOut, VOut> WrappedProcessorSupplier<KIn, VIn, KOut, VOut> wrapProcessorSupplier(
        String step, ProcessorSupplier<KIn, VIn, KOut, VOut> supplier) {
        count(step, 0);
        return ProcessorWrapper.asWrapped(
            new ProcessorSupplier<KIn, VIn, KOut, VOut>() {
                @Override
                public Processor<KIn, VIn, KOut, VOut> get() {
                    return new Counted<>(step, supplier.get());
                }

                @Override
                public Set<StoreBuilder<?>> stores() {
                    return supplier.stores();
                }
            });
    }

    @Override
    public <KIn, VIn, VOut> WrappedFixedKeyProcessorSupplier<KIn, VIn, VOut> wrapFixedKeyProcessorSupplier(
        String step, FixedKeyProcessorSupplier<KIn, VIn, VOut> supplier) {
        count(step, 0);
        return ProcessorWrapper.asWrappedFixedKey(
            new FixedKeyProcessorSupplier<KIn, VIn, VOut>() {
                @Override
                public FixedKeyProcessor<KIn, VIn, VOut> get() {
                    return new CountedFixed<>(step, supplier.get());
                }

                @Override
                public Set<StoreBuilder<?>> stores() {
                    return supplier.stores();
                }
            });
    }

    private static final class Counted<KIn, VIn, KOut, VOut> implements Processor<KIn, VIn, KOut, VOut> {
        private final String step;
        private final Processor<KIn, VIn, KOut, VOut> inner;

        Counted(String step, Processor<KIn, VIn, KOut, VOut> inner) {
            this.step = step;
            this.inner = inner;
        }

        @Override
        public void init(ProcessorContext<KOut, VOut> context) {
            inner.init(context);
        }

        @Override
        public void process(Record<KIn, VIn> record) {
            count(step, 1);
            inner.process(record);
        }

        @Override
        public void close() {
            inner.close();
        }
    }

    private static final class CountedFixed<KIn, VIn, VOut> implements FixedKeyProcessor<KIn, VIn, VOut> {
        private final String step;
        private final FixedKeyProcessor<KIn, VIn, VOut> inner;

        CountedFixed(String step, FixedKeyProcessor<KIn, VIn, VOut> inner) {
            this.step = step;
            this.inner = inner;
        }

        @Override
        public void init(FixedKeyProcessorContext<KIn, VOut> context) {
            inner.init(context);
        }

        @Override
        public void process(FixedKeyRecord<KIn, VIn> record) {
            count(step, 1);
            inner.process(record);
        }

        @Override
        public void close() {
            inner.close();
        }
    }
}
