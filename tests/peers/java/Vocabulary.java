import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.streams.KeyValue;

/**
 * The functions that a description may name, as `vocabulary.py` has them for the other side.
 *
 * <p>A function is its name and, behind a colon, one parameter: `append:x`. Values are strings, 64-bit
 * integers or null.
 */
final class Vocabulary {
    private Vocabulary() {}

    static String text(Object value) {
        return value == null ? "null" : value.toString();
    }

    /** An integer itself, a string's length, 0 for null. */
    static long number(Object value) {
        if (value == null) {
            return 0;
        }
        return value instanceof Long number ? number : value.toString().length();
    }

    private static String name(String function) {
        int colon = function.indexOf(':');
        return colon < 0 ? function : function.substring(0, colon);
    }

    private static String parameter(String function) {
        return function.substring(function.indexOf(':') + 1);
    }

    private static long limit(String function) {
        return Long.parseLong(parameter(function));
    }

    private static IllegalArgumentException unknown(String function) {
        return new IllegalArgumentException("no such function: " + function);
    }

    static boolean test(String function, Object key, Object value) {
        return switch (name(function)) {
            case "all" -> true;
            case "none" -> false;
            case "even" -> value != null && Math.floorMod(number(value), 2L) == 0;
            case "longer" -> value != null && number(value) > limit(function);
            case "key_is" -> text(key).equals(parameter(function));
            case "has_value" -> value != null;
            case "has_key" -> key != null;
            default -> throw unknown(function);
        };
    }

    static Object value(String function, Object value) {
        if (name(function).equals("or_null")) {
            return text(value);
        }
        if (value == null) {
            return null;
        }
        return switch (name(function)) {
            case "append" -> value + parameter(function);
            case "upper" -> ((String) value).toUpperCase(java.util.Locale.ROOT);
            case "length" -> number(value);
            case "add" -> (Long) value + limit(function);
            case "text" -> text(value);
            case "same" -> value;
            case "null_over" -> number(value) > limit(function) ? null : value;
            default -> throw unknown(function);
        };
    }

    static String key(String function, Object key, Object value) {
        return switch (name(function)) {
            case "key" -> key == null ? null : text(key);
            case "value" -> value == null ? null : text(value);
            case "first_letter" -> value == null || text(value).isEmpty() ? null : text(value).substring(0, 1);
            case "bucket" -> value == null ? null : "b" + Math.floorMod(number(value), limit(function));
            case "constant" -> parameter(function);
            default -> throw unknown(function);
        };
    }

    static KeyValue<Object, Object> pair(String function, Object key, Object value) {
        return switch (name(function)) {
            case "swap" -> KeyValue.pair(key("value", key, value), key("key", key, value));
            case "by" -> KeyValue.pair(key(parameter(function), key, value), value);
            default -> throw unknown(function);
        };
    }

    static List<KeyValue<Object, Object>> pairs(String function, Object key, Object value) {
        List<KeyValue<Object, Object>> pairs = new ArrayList<>();
        switch (name(function)) {
            case "words" -> words(value).forEach(word -> pairs.add(KeyValue.pair(word, word)));
            case "twice" -> {
                pairs.add(KeyValue.pair(key, value));
                pairs.add(KeyValue.pair(key, value));
            }
            case "both_keys" -> {
                pairs.add(KeyValue.pair(key, value));
                pairs.add(KeyValue.pair(key("first_letter", key, value), value));
            }
            default -> throw unknown(function);
        }
        return pairs;
    }

    static List<Object> values(String function, Object value) {
        return switch (name(function)) {
            case "words" -> words(value);
            case "twice" -> {
                List<Object> both = new ArrayList<>();
                both.add(value);
                both.add(value);
                yield both;
            }
            default -> throw unknown(function);
        };
    }

    private static List<Object> words(Object value) {
        List<Object> words = new ArrayList<>();
        if (value != null) {
            for (String word : text(value).split(" ")) {
                if (!word.isEmpty()) {
                    words.add(word);
                }
            }
        }
        return words;
    }

    static Object join(String function, Object left, Object right) {
        return switch (name(function)) {
            case "concat" -> text(left) + "+" + text(right);
            case "sum" -> number(left) + number(right);
            case "null_over" -> number(left) + number(right) > limit(function) ? null : text(left) + "+" + text(right);
            default -> throw unknown(function);
        };
    }

    static Object reduce(String function, Object old, Object value) {
        return switch (name(function)) {
            case "concat" -> text(old) + text(value);
            case "minus" -> text(old) + "-" + text(value);
            case "sum" -> number(old) + number(value);
            case "difference" -> number(old) - number(value);
            case "latest" -> value;
            case "max" -> number(value) > number(old) ? value : old;
            case "concat_under" -> text(old).length() > limit(function) ? null : text(old) + text(value);
            default -> throw unknown(function);
        };
    }

    static Object initial(String function) {
        return switch (name(function)) {
            case "concat", "concat_under", "minus" -> "";
            case "sum", "difference", "max" -> 0L;
            default -> throw unknown(function);
        };
    }

    static Object aggregate(String function, Object key, Object value, Object aggregate) {
        return switch (name(function)) {
            case "concat" -> text(aggregate) + "," + text(value);
            case "minus" -> text(aggregate) + "-" + text(value);
            case "concat_under" ->
                text(aggregate).length() > limit(function) ? null : text(aggregate) + "," + text(value);
            case "sum" -> number(aggregate) + number(value);
            case "difference" -> number(aggregate) - number(value);
            case "max" -> Math.max(number(aggregate), number(value));
            default -> throw unknown(function);
        };
    }

    /** Of two sessions that become one. */
    static Object merge(String function, Object one, Object other) {
        return switch (name(function)) {
            case "concat", "concat_under" -> text(one) + "|" + text(other);
            case "sum" -> number(one) + number(other);
            case "max" -> Math.max(number(one), number(other));
            default -> throw unknown(function);
        };
    }

    /** The time that an extractor finds; -1: the record has none. */
    static long time(String function, Object value, long time, long partitionTime) {
        return switch (name(function)) {
            case "shift" -> time + limit(function);
            case "early_invalid" -> time < limit(function) ? -1 : time;
            case "odd_invalid" -> Math.floorMod(number(value), 2L) == 0 ? time : -1;
            case "late_invalid" -> time < partitionTime ? -1 : time;
            default -> throw unknown(function);
        };
    }

    /** The partitions, of one, to which a record goes; empty: by its key. */
    static Optional<Set<Integer>> partitions(String function, Object value) {
        return switch (function) {
            case "by_key" -> Optional.empty();
            case "only" -> Optional.of(Set.of(0));
            case "odd_dropped" ->
                Optional.of(Math.floorMod(number(value), 2L) == 0 ? Set.of(0) : Set.of());
            default -> throw unknown(function);
        };
    }

    static String topic(String function, Object key, Object value) {
        return parameter(function) + (Math.floorMod(number(value), 2L) == 0 ? "-even" : "-odd");
    }
}
