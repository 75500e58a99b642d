package planner.oracle;

import java.lang.reflect.Field;

/** Private state that an answer tells, and that a stand-in sets. */
final class Fields {
    private Fields() {}

    static Object get(Object target, String name) throws ReflectiveOperationException {
        return of(target.getClass(), name).get(target);
    }

    static void set(Object target, String name, Object value) throws ReflectiveOperationException {
        of(target.getClass(), name).set(target, value);
    }

    /** Finds a field of a class or of what it extends. */
    static Field of(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
            for (Field field : owner.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(type + "." + name);
    }
}
