package planner.oracle;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Answers lines of hexadecimal UTF-8, an expression and its subjects: {@code refused}, or a 1 or 0 for each subject. */
public final class Patterns {
    private Patterns() {
    }

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ExecutorService worker = Executors.newCachedThreadPool(work -> {
            var thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", -1);
            Future<String> answer = worker.submit((Callable<String>) () -> answer(parts));
            try {
                System.out.println(answer.get(2, TimeUnit.SECONDS));
            } catch (TimeoutException slow) {
                answer.cancel(true);
                System.out.println("slow");
            }
        }
        System.out.flush();
    }

    private static String answer(String[] parts) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(text(parts[0]));
        } catch (PatternSyntaxException refused) {
            return "refused";
        } catch (StackOverflowError | OutOfMemoryError | RuntimeException broken) {
            return "broken";
        }
        var said = new StringBuilder();
        for (int i = 1; i < parts.length; i++) {
            try {
                said.append(pattern.matcher(text(parts[i])).matches() ? '1' : '0');
            } catch (StackOverflowError | RuntimeException broken) {
                said.append('!');
            }
        }
        return said.toString();
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }
}
