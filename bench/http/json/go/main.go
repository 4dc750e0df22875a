// SPDX-License-Identifier: MIT

// `server sqlite FILE PORT` and `server postgres CONNECTION PORT`: what ../sqlite.c and ../postgres.c
// answer, by net/http, encoding/json, and the drivers that are used most. Statements are prepared
// once for each of eight connections: pgx does that by itself.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"runtime"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/mattn/go-sqlite3"
)

const connections = 8

type entry struct {
	ID   int64  `json:"id"`
	What string `json:"what"`
}

// The entry; nil: there is none.
type finder func(id int64) (*entry, error)
type lister func() ([]entry, error)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func openSQLite(path string) (lister, finder) {
	database := must(sql.Open("sqlite3", path))
	database.SetMaxOpenConns(connections)
	database.SetMaxIdleConns(connections)
	all := must(database.Prepare("select id, what from todo"))
	one := must(database.Prepare("select id, what from todo where id = ?"))
	list := func() ([]entry, error) {
		rows, err := all.Query()
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		entries := []entry{}
		for rows.Next() {
			var row entry
			if err := rows.Scan(&row.ID, &row.What); err != nil {
				return nil, err
			}
			entries = append(entries, row)
		}
		return entries, rows.Err()
	}
	find := func(id int64) (*entry, error) {
		var row entry
		err := one.QueryRow(id).Scan(&row.ID, &row.What)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return &row, err
	}
	return list, find
}

func openPostgres(connection string) (lister, finder) {
	ctx := context.Background()
	configuration := must(pgxpool.ParseConfig(connection))
	configuration.MaxConns, configuration.MinConns = connections, connections
	pool := must(pgxpool.NewWithConfig(ctx, configuration))
	list := func() ([]entry, error) {
		rows, err := pool.Query(ctx, "select id, what from todo")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
	}
	find := func(id int64) (*entry, error) {
		var row entry
		err := pool.QueryRow(ctx, "select id, what from todo where id = $1", id).Scan(&row.ID, &row.What)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return &row, err
	}
	return list, find
}

func answer(response http.ResponseWriter, value any, err error) {
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	json.NewEncoder(response).Encode(value)
}

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	open := map[string]func(string) (lister, finder){"sqlite": openSQLite, "postgres": openPostgres}
	list, find := open[os.Args[1]](os.Args[2])
	http.HandleFunc("GET /todo", func(response http.ResponseWriter, _ *http.Request) {
		entries, err := list()
		answer(response, entries, err)
	})
	http.HandleFunc("GET /todo/{id}", func(response http.ResponseWriter, request *http.Request) {
		id, err := strconv.ParseInt(request.PathValue("id"), 10, 64)
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		row, err := find(id)
		if row == nil && err == nil {
			http.Error(response, "no such entry", http.StatusNotFound)
			return
		}
		answer(response, row, err)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[3], nil))
}
