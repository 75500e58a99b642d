package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.configuration.FieldContext;

/** Settings of a vector. */
final class Config {
    private Config() {}

    /** Returns Pulsar's defaults with the vector's overrides, which have the names of the fields. */
    static ServiceConfiguration of(JsonNode overrides) throws ReflectiveOperationException {
        ServiceConfiguration config = new ServiceConfiguration();
        for (Iterator<Map.Entry<String, JsonNode>> all = overrides.fields(); all.hasNext();) {
            Map.Entry<String, JsonNode> one = all.next();
            Field field = field(one.getKey());
            if (field == null) {
                continue; // a setting of another release
            }
            field.setAccessible(true);
            field.set(config, Set.class.isAssignableFrom(field.getType())
                    ? new LinkedHashSet<>(texts(one.getValue()))
                    : Oracle.JSON.convertValue(one.getValue(), field.getType()));
        }
        return config;
    }

    private static Field field(String name) {
        try {
            return ServiceConfiguration.class.getDeclaredField(name);
        } catch (NoSuchFieldException absent) {
            return null;
        }
    }

    /** Tells each setting that is asked for, where the release has it: its default, its type, and whether it is dynamic. */
    static ObjectNode settings(ServiceConfiguration config, JsonNode input) throws ReflectiveOperationException {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        for (String name : texts(input.get("names"))) {
            Field field = field(name);
            if (field == null) {
                continue;
            }
            field.setAccessible(true);
            ObjectNode one = answer.putObject(name);
            Object value = field.get(config);
            one.set("default", Oracle.JSON.valueToTree(value instanceof Optional<?> may ? may.orElse(null) : value));
            one.put("type", field.getType().getSimpleName());
            one.put("dynamic", field.getAnnotation(FieldContext.class).dynamic());
        }
        return answer;
    }

    /** Returns the weight of a direction, which old releases know by its misspelt name only. */
    static double bandwidthWeight(ServiceConfiguration config, String direction) throws ReflectiveOperationException {
        for (boolean misspelt : new boolean[] {false, true}) {
            String name = "getLoadBalancerBand" + (misspelt ? "with" : "width") + direction + "ResourceWeight";
            for (Method method : ServiceConfiguration.class.getMethods()) {
                if (method.getName().equals(name)) {
                    return (double) method.invoke(config);
                }
            }
        }
        throw new NoSuchMethodException(direction);
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(one -> texts.add(one.asText()));
        return texts;
    }
}
