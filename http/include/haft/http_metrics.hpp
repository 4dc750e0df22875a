// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: metrics of the application's own, over haft/http_metrics.h. haft/http.hpp
 * includes this file.
 *
 *     http::counter sold(server, "shop_sold", "Things that were sold.", {"route"});
 *     http::histogram weight(server, "shop_weight_kilograms", "Of parcels.", {}, {1, 5, 30});
 *     ...
 *     sold.with(request.route().value_or("")).add(1);
 *     weight.observe(2.5);
 */
#ifndef HAFT_HTTP_METRICS_HPP
#define HAFT_HTTP_METRICS_HPP

#include <haft/http.hpp>

namespace haft::http {

namespace detail {

/* A metric of a server, with which it ends. */
template <haft_http_metric_kind_t kind>
class metric {
  public:
    metric(const metric &) = delete;
    metric &operator=(const metric &) = delete;

    /* Throws std::invalid_argument, with the words of haft_http_server_mistake. */
    metric(const routes &server, const std::string &name, const std::string &help,
           const std::vector<std::string> &labels, const std::vector<double> &limits,
           std::size_t most)
        : label_count(labels.size()) {
        std::vector<const char *> names;
        for (const std::string &label : labels)
            names.push_back(label.c_str());
        haft_http_metric_options_t options = {};
        options.kind = kind;
        options.name = name.c_str();
        options.help = help.c_str();
        options.labels = names.data();
        options.label_count = names.size();
        options.limits = limits.empty() ? nullptr : limits.data();
        options.limit_count = limits.size();
        options.most = most;
        state = haft_http_metric_new_with(&options, server.get());
        if (state == nullptr) {
            haft_take_refusal(-EINVAL, nullptr, 0); /* no later exception has them */
            throw std::invalid_argument(haft_http_server_mistake(server.get()));
        }
    }

  protected:
    /* With as many values as there are labels. */
    template <typename... V>
    haft_http_series_t *series(const V &...values) const {
        if (sizeof...(V) != label_count)
            throw std::logic_error("a metric has a value for each of its labels");
        const std::array<std::string, sizeof...(V)> texts = {std::string(values)...};
        std::array<const char *, sizeof...(V) + 1> pointers = {};
        for (std::size_t i = 0; i < texts.size(); i++)
            pointers[i] = texts[i].c_str();
        return haft_http_metric_series(state, pointers.data());
    }

  private:
    haft_http_metric_t *state;
    std::size_t label_count;
};

} // namespace detail

/* Goes up only. What with() returns may be kept as long as the server lives, and used by any
   thread; so it is for the others. */
class counter : public detail::metric<HAFT_HTTP_COUNTER> {
  public:
    explicit counter(const routes &server, const std::string &name, const std::string &help = "",
                     const std::vector<std::string> &labels = {}, std::size_t most = 0)
        : metric(server, name, help, labels, {}, most) {}

    class one {
      public:
        void add(std::uint64_t more = 1) const { haft_http_series_count(state, more); }

      private:
        friend class counter;
        explicit one(haft_http_series_t *of) : state(of) {}
        haft_http_series_t *state;
    };
    template <typename... V>
    one with(const V &...values) const {
        return one(series(values...));
    }
    void add(std::uint64_t more = 1) const { with().add(more); }
};

/* Is what it was set to last. */
class gauge : public detail::metric<HAFT_HTTP_GAUGE> {
  public:
    explicit gauge(const routes &server, const std::string &name, const std::string &help = "",
                   const std::vector<std::string> &labels = {}, std::size_t most = 0)
        : metric(server, name, help, labels, {}, most) {}

    class one {
      public:
        void set(double value) const { haft_http_series_set(state, value); }
        void add(double more) const { haft_http_series_add(state, more); }

      private:
        friend class gauge;
        explicit one(haft_http_series_t *of) : state(of) {}
        haft_http_series_t *state;
    };
    template <typename... V>
    one with(const V &...values) const {
        return one(series(values...));
    }
    void set(double value) const { with().set(value); }
    void add(double more) const { with().add(more); }
};

/* Counts how many numbers are up to each limit; without limits those are for seconds. */
class histogram : public detail::metric<HAFT_HTTP_HISTOGRAM> {
  public:
    explicit histogram(const routes &server, const std::string &name, const std::string &help = "",
                       const std::vector<std::string> &labels = {},
                       const std::vector<double> &limits = {}, std::size_t most = 0)
        : metric(server, name, help, labels, limits, most) {}

    class one {
      public:
        void observe(double value) const { haft_http_series_observe(state, value); }
        template <typename Rep, typename Period>
        void observe(std::chrono::duration<Rep, Period> time) const {
            observe(std::chrono::duration<double>(time).count());
        }

      private:
        friend class histogram;
        explicit one(haft_http_series_t *of) : state(of) {}
        haft_http_series_t *state;
    };
    template <typename... V>
    one with(const V &...values) const {
        return one(series(values...));
    }
    template <typename T>
    void observe(T value) const {
        with().observe(value);
    }
};

} // namespace haft::http

#endif
