// SPDX-License-Identifier: MIT
/* The nodes that components return: a description of what is shown. */
#ifndef COMPONENTS_NODE_HPP
#define COMPONENTS_NODE_HPP

#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gui {

/* Thrown where hooks are misused: in another order than before, or outside of a component. */
class hook_error : public std::logic_error {
    using std::logic_error::logic_error;
};

/* A property of an element: "id", "color"... */
struct attribute {
    attribute(std::string which, std::string what)
        : name(std::move(which)), value(std::move(what)) {}
    std::string name, value;
};

/* The action of an element on an event. */
struct listener {
    std::string event;
    std::function<void()> call;
};
template <typename F>
listener on(std::string event, F function) {
    return {std::move(event), std::function<void()>(std::move(function))};
}

class node;

namespace detail {

struct mounted;

/* A component with its properties, or a context with its value. `type` is one for each
 * component or context. */
struct description {
    const char *type;
    explicit description(const char *of) : type(of) {}
    description(const description &) = delete;
    description &operator=(const description &) = delete;
    virtual ~description() = default;
    virtual node render() const;
    virtual bool same(const description &other) const = 0;
};

template <typename... T>
bool equal(const std::tuple<T...> &a, const std::tuple<T...> &b) {
    if constexpr ((std::equality_comparable<T> && ...))
        return a == b;
    else
        return false;
}

} // namespace detail

/* A description of what is to be seen: nothing, a text, an element, a component, or a context. A
 * value: cheap to make, to be returned by components. */
class node {
  public:
    enum kind { nothing, text, element, component, context };

    node() = default;
    node(std::string content) : is(text), name(std::move(content)) {}
    node(const char *content) : node(std::string(content)) {}

    /* Gives the node a name among its siblings, by which it is known when they change their order.
     * Two siblings with one key are an error. */
    node &&with_key(std::string chosen) && {
        key = std::move(chosen);
        return std::move(*this);
    }

    /* The value of an attribute; NULL if there is none of this name. */
    const std::string *find(std::string_view wanted) const {
        for (const attribute &each : attributes)
            if (each.name == wanted)
                return &each.value;
        return nullptr;
    }

    kind is = nothing;
    std::string name; /* the text, the element's tag, or the component's name */
    std::string key;
    std::vector<attribute> attributes;
    std::vector<listener> listeners;
    std::vector<node> children;
    std::shared_ptr<const detail::description> described; /* of a component or context */

    void add(attribute part) { attributes.push_back(std::move(part)); }
    void add(listener part) { listeners.push_back(std::move(part)); }
    void add(node part) { children.push_back(std::move(part)); }
    void add(std::vector<node> parts) {
        for (node &part : parts)
            children.push_back(std::move(part));
    }
};

/* element("row", parts...): a part is an attribute, on(event, function), a node, a text, or a
 * vector of nodes. */
template <typename... Parts>
node element(std::string tag, Parts &&...parts) {
    node made;
    made.is = node::element;
    made.name = std::move(tag);
    (made.add(static_cast<Parts &&>(parts)), ...);
    return made;
}

namespace detail {

inline node description::render() const {
    return {};
}

template <typename... P>
std::tuple<std::decay_t<P>...> properties_of(node (*)(P...));

/* The name of a function or lambda, for messages; its address is the identity of the component. */
template <auto Function>
constexpr std::string_view name_of_function() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("Function = ") + 11);
    text = text.substr(0, text.find_first_of(";]"));
    return text[0] == '&' ? text.substr(1) : text;
}
template <auto Function>
struct function_text {
    char text[name_of_function<Function>().size() + 1] = {};
    constexpr function_text() {
        for (std::size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = name_of_function<Function>()[i];
    }
};
template <auto Function>
inline constexpr function_text<Function> function_text_of{};

template <typename T>
constexpr std::string_view name_of_type() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("T = ") + 4);
    return text.substr(0, text.find_first_of(";]"));
}
template <typename T>
struct type_text {
    char text[name_of_type<T>().size() + 1] = {};
    constexpr type_text() {
        for (std::size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = name_of_type<T>()[i];
    }
};
template <typename T>
inline constexpr type_text<T> text_of_type{};

template <auto Function>
struct component_call final : description {
    using properties = decltype(properties_of(+Function));
    properties given;

    template <typename... Arguments>
    explicit component_call(Arguments &&...arguments)
        : description(function_text_of<Function>.text),
          given(static_cast<Arguments &&>(arguments)...) {
        static_assert(sizeof...(Arguments) == std::tuple_size_v<properties>,
                      "gui: component<function>(...) takes one argument for each parameter of the "
                      "function.");
    }
    node render() const override { return std::apply(Function, given); }
    bool same(const description &other) const override {
        return equal(given, static_cast<const component_call &>(other).given);
    }
};

template <typename V>
struct context_value final : description {
    using value_type = typename V::variable_value;
    std::tuple<value_type> value;

    explicit context_value(value_type &&given)
        : description(text_of_type<V>.text), value(std::move(given)) {}
    bool same(const description &other) const override {
        return equal(value, static_cast<const context_value &>(other).value);
    }
};

} // namespace detail

/* A component with its properties: component<counter>("apples"). The function, or lambda without
 * captures, takes the properties by value or constant reference, and returns a node. */
template <auto Function, typename... Properties>
node component(Properties &&...properties) {
    node made;
    made.is = node::component;
    made.described = std::make_shared<const detail::component_call<Function>>(
        static_cast<Properties &&>(properties)...);
    made.name = made.described->type;
    return made;
}

/* Gives the variable V (haft/binding.hpp) a value for use_context in the components among and under
 * the parts, which are those of an element. */
template <typename V, typename... Parts>
node context(typename V::variable_value value, Parts &&...parts) {
    node made = element(std::string(), static_cast<Parts &&>(parts)...);
    made.is = node::context;
    made.described = std::make_shared<const detail::context_value<V>>(std::move(value));
    made.name = made.described->type;
    return made;
}

} // namespace gui

#endif
