package planner.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.broker.ServiceConfiguration;

/** Settings of a vector. */
final class Config {
    private Config() {}

    /** Returns Pulsar's defaults with the vector's overrides, which have the names of the fields. */
    static ServiceConfiguration of(JsonNode overrides) throws ReflectiveOperationException {
        ServiceConfiguration config = new ServiceConfiguration();
        for (Iterator<Map.Entry<String, JsonNode>> all = overrides.fields(); all.hasNext();) {
            Map.Entry<String, JsonNode> one = all.next();
            Field field = ServiceConfiguration.class.getDeclaredField(one.getKey());
            field.setAccessible(true);
            field.set(config, Set.class.isAssignableFrom(field.getType())
                    ? new LinkedHashSet<>(texts(one.getValue()))
                    : Oracle.JSON.convertValue(one.getValue(), field.getType()));
        }
        return config;
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(one -> texts.add(one.asText()));
        return texts;
    }
}
