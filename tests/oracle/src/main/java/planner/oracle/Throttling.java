package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.qos.AsyncTokenBucket;
import org.apache.pulsar.broker.qos.FinalRateAsyncTokenBucketBuilder;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.broker.service.persistent.DispatchRateLimiter;
import org.apache.pulsar.broker.service.persistent.DispatchRateLimiterAsyncTokenBucketImpl;
import org.apache.pulsar.broker.service.persistent.DispatchRateLimiterClassicImpl;
import org.apache.pulsar.broker.service.persistent.PersistentTopic;
import org.apache.pulsar.common.policies.data.impl.DispatchRateImpl;
import org.mockito.Mockito;

/** The two dispatch limiters of a topic, and the bare token bucket. */
final class Throttling {
    private Throttling() {}

    /** The clock, and the timers that look at it. */
    private static final class Time {
        private final List<Timer> timers = new ArrayList<>();
        private long nanos;

        private final class Timer {
            private final Runnable task;
            private final long period;
            private long due;
            private boolean cancelled;

            Timer(Runnable task, long delay, long period) {
                this.task = task;
                this.period = period;
                this.due = nanos + delay;
            }
        }

        /** Moves the clock, running what falls due on the way. */
        void moveTo(long moment) {
            for (Timer timer : timers) {
                for (; !timer.cancelled && timer.due <= moment; timer.due += timer.period) {
                    nanos = timer.due;
                    timer.task.run();
                }
            }
            nanos = moment;
        }

        ScheduledExecutorService executor() {
            ScheduledExecutorService executor = Mockito.mock(ScheduledExecutorService.class);
            Mockito.when(executor.scheduleAtFixedRate(Mockito.any(), Mockito.anyLong(), Mockito.anyLong(), Mockito.any()))
                    .thenAnswer(call -> {
                        TimeUnit unit = call.getArgument(3);
                        Timer timer = new Timer(call.getArgument(0), unit.toNanos(call.<Long>getArgument(1)),
                                unit.toNanos(call.<Long>getArgument(2)));
                        timers.add(timer);
                        ScheduledFuture<?> future = Mockito.mock(ScheduledFuture.class);
                        Mockito.when(future.cancel(Mockito.anyBoolean())).thenAnswer(cancel -> timer.cancelled = true);
                        return future;
                    });
            return executor;
        }
    }

    static ObjectNode answer(ServiceConfiguration config, JsonNode input) {
        Time time = new Time();
        time.nanos = input.path("createdAtNanos").asLong();
        if (input.get("limiter").asText().equals("AsyncTokenBucket")) {
            return bucket(time, input);
        }
        PersistentTopic topic = topic(config, time, input);
        DispatchRateLimiter limiter = input.get("limiter").asText().equals("classic")
                ? new DispatchRateLimiterClassicImpl(topic, DispatchRateLimiter.Type.TOPIC)
                : new DispatchRateLimiterAsyncTokenBucketImpl(topic, DispatchRateLimiter.Type.TOPIC);
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode ops = answer.putArray("ops");
        for (JsonNode op : input.get("ops")) {
            time.moveTo(op.get("atNanos").asLong());
            if (op.has("dispatchRate")) {
                limiter.updateDispatchRate(rate(op.get("dispatchRate")));
            }
            if (op.has("consumeMsgs") || op.has("consumeBytes")) {
                limiter.consumeDispatchQuota(op.path("consumeMsgs").asLong(), op.path("consumeBytes").asLong());
            }
            ops.addObject()
                    .put("availableMsgs", limiter.getAvailableDispatchRateLimitOnMsg())
                    .put("availableBytes", limiter.getAvailableDispatchRateLimitOnByte());
        }
        return answer.put("dispatchRateOnMsg", limiter.getDispatchRateOnMsg())
                .put("dispatchRateOnByte", limiter.getDispatchRateOnByte())
                .put("enabled", limiter.isDispatchRateLimitingEnabled());
    }

    private static DispatchRateImpl rate(JsonNode rate) {
        return new DispatchRateImpl(rate.get("dispatchThrottlingRateInMsg").asInt(),
                rate.get("dispatchThrottlingRateInByte").asLong(), rate.path("relativeToPublishRate").asBoolean(),
                rate.path("ratePeriodInSecond").asInt(1));
    }

    private static PersistentTopic topic(ServiceConfiguration config, Time time, JsonNode input) {
        ScheduledExecutorService executor = time.executor();
        PulsarService pulsar = Mockito.mock(PulsarService.class);
        Mockito.when(pulsar.getConfiguration()).thenReturn(config);
        Mockito.when(pulsar.getConfig()).thenReturn(config);
        Mockito.when(pulsar.getExecutor()).thenReturn(executor);
        Mockito.when(pulsar.getMonotonicClock()).thenReturn(() -> time.nanos);
        BrokerService service = Mockito.mock(BrokerService.class);
        Mockito.when(service.pulsar()).thenReturn(pulsar);
        Mockito.when(service.getPulsar()).thenReturn(pulsar);
        PersistentTopic topic = Mockito.mock(PersistentTopic.class);
        Mockito.when(topic.getName()).thenReturn("persistent://t/n/topic");
        Mockito.when(topic.getBrokerService()).thenReturn(service);
        DispatchRateImpl rate = rate(input.get("dispatchRate"));
        Mockito.when(topic.getDispatchRate()).thenReturn(rate);
        Mockito.when(topic.getLastUpdatedAvgPublishRateInMsg())
                .thenReturn(input.path("avgPublishRateInMsg").asDouble());
        Mockito.when(topic.getLastUpdatedAvgPublishRateInByte())
                .thenReturn(input.path("avgPublishRateInByte").asDouble());
        return topic;
    }

    private static ObjectNode bucket(Time time, JsonNode input) {
        FinalRateAsyncTokenBucketBuilder builder = AsyncTokenBucket.builder()
                .rate(input.get("rate").asLong())
                .ratePeriodNanos(input.get("ratePeriodNanos").asLong())
                .addTokensResolutionNanos(input.get("addTokensResolutionNanos").asLong())
                .clock(() -> time.nanos);
        if (input.has("capacity")) {
            builder.capacity(input.get("capacity").asLong());
        }
        if (input.has("initialTokens")) {
            builder.initialTokens(input.get("initialTokens").asLong());
        }
        AsyncTokenBucket bucket = builder.build();
        ObjectNode answer = Oracle.JSON.createObjectNode();
        ArrayNode ops = answer.putArray("ops");
        for (JsonNode op : input.get("ops")) {
            time.moveTo(op.get("atNanos").asLong());
            if (op.has("consume")) {
                bucket.consumeTokens(op.get("consume").asLong());
            }
            ops.addObject()
                    .put("tokens", bucket.getTokens())
                    .put("throttlingDurationNanos", bucket.calculateThrottlingDuration());
        }
        return answer;
    }
}
