package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// statements prepares each query once.
type statements struct {
	prepare func(ctx context.Context, query string) (statement, error)
	mu      sync.Mutex
	by      map[string]statement
}

// get returns the statement of a query, which is one of this package's constants: they are kept until the end.
func (p *statements) get(ctx context.Context, query string) (statement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.by[query]; st != nil {
		return st, nil
	}
	st, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	p.by[query] = st
	return st, nil
}

func (p *statements) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, st := range p.by {
		errs = append(errs, st.Close())
	}
	clear(p.by)
	return errors.Join(errs...)
}

// statement is a prepared one: of the pool of readers, or of the writer, which goes without the pool's bookkeeping since
// only who has the turn uses it. That takes more of a short statement's time than SQLite does.
type statement interface {
	// exec returns the number of rows that were changed.
	exec(ctx context.Context, args []any) (int64, error)
	query(ctx context.Context, args []any) (rows, error)
	Close() error
}

// row is what a scan function reads.
type row interface{ Scan(dest ...any) error }

// rows are used as those of database/sql.
type rows interface {
	row
	Next() bool
	Err() error
	Close() error
}

// pooled is a statement of database/sql.
type pooled struct{ *sql.Stmt }

// pool prepares statements on any connection of a pool.
func pool(db *sql.DB) *statements {
	return &statements{by: map[string]statement{}, prepare: func(ctx context.Context, query string) (statement, error) {
		st, err := db.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		return pooled{st}, nil
	}}
}

func (p pooled) exec(ctx context.Context, args []any) (int64, error) {
	res, err := p.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (p pooled) query(ctx context.Context, args []any) (rows, error) {
	return p.QueryContext(ctx, args...) //nolint:rowserrcheck // the caller's
}

// connection is what the driver gives: it is used by one goroutine at a time.
type connection interface {
	driver.Conn
	driver.ConnPrepareContext
}

// direct is a statement of one connection.
type direct struct {
	driver.Stmt
	of interface {
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	args *[]driver.NamedValue // the connection's, while a call runs
}

// directly prepares statements on one connection.
func directly(c connection) *statements {
	args := new([]driver.NamedValue)
	return &statements{by: map[string]statement{}, prepare: func(ctx context.Context, query string) (statement, error) {
		st, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		d := direct{Stmt: st, args: args}
		var ok bool
		if d.of, ok = st.(interface {
			driver.StmtExecContext
			driver.StmtQueryContext
		}); !ok {
			return nil, errors.Join(errors.New("sqlite: the driver's statements take no context"), st.Close())
		}
		return d, nil
	}}
}

// named gives arguments the driver's form. It is good until the next call.
func (d direct) named(args []any) ([]driver.NamedValue, error) {
	list := (*d.args)[:0]
	for i, arg := range args {
		v, err := value(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		list = append(list, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	*d.args = list
	return list, nil
}

func value(arg any) (driver.Value, error) {
	switch v := arg.(type) {
	case nil, string, int64, []byte, bool:
		return v, nil
	case int:
		return int64(v), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(arg)
}

func (d direct) exec(ctx context.Context, args []any) (int64, error) {
	list, err := d.named(args)
	if err != nil {
		return 0, err
	}
	defer clear(list) // or what a message says would be kept until the next call
	res, err := d.of.ExecContext(ctx, list)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (d direct) query(ctx context.Context, args []any) (rows, error) {
	list, err := d.named(args)
	if err != nil {
		return nil, err
	}
	defer clear(list)
	r, err := d.of.QueryContext(ctx, list)
	if err != nil {
		return nil, err
	}
	return &directRows{Rows: r, values: make([]driver.Value, len(r.Columns()))}, nil
}

// directRows are the rows of a statement of one connection.
type directRows struct {
	driver.Rows
	values []driver.Value
	err    error
}

// Next reads the next row.
func (r *directRows) Next() bool {
	if r.err == nil {
		r.err = r.Rows.Next(r.values)
	}
	return r.err == nil
}

// Err is what ended the rows before their end.
func (r *directRows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Scan gives the row's values to what dest points to, by the rules of database/sql as far as they are used here.
func (r *directRows) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return fmt.Errorf("%d columns into %d places", len(r.values), len(dest))
	}
	for i, d := range dest {
		if err := assign(d, r.values[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case *string:
		if s, ok := v.(string); ok {
			*d = s
			return nil
		}
	case *int64:
		if n, ok := v.(int64); ok {
			*d = n
			return nil
		}
	case *[]byte:
		if b, ok := v.([]byte); ok {
			*d = b // the driver's copy
			return nil
		}
	case *bool:
		if n, ok := v.(int64); ok && (n == 0 || n == 1) {
			*d = n == 1
			return nil
		}
	}
	return assignTo(reflect.ValueOf(dest).Elem(), v)
}

// assignTo goes by the kind of what is assigned to: the domain has its own types of strings.
func assignTo(d reflect.Value, v driver.Value) error {
	switch v := v.(type) {
	case nil:
		if k := d.Kind(); k == reflect.Pointer || k == reflect.Slice {
			d.SetZero()
			return nil
		}
	case string:
		switch d.Kind() {
		case reflect.String:
			d.SetString(v)
			return nil
		case reflect.Slice:
			if d.Type().Elem().Kind() == reflect.Uint8 {
				d.SetBytes([]byte(v))
				return nil
			}
		}
	case []byte:
		switch d.Kind() {
		case reflect.String:
			d.SetString(string(v))
			return nil
		case reflect.Slice:
			if d.Type().Elem().Kind() == reflect.Uint8 {
				d.SetBytes(v)
				return nil
			}
		}
	case int64:
		switch d.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			if !d.OverflowInt(v) {
				d.SetInt(v)
				return nil
			}
		case reflect.Bool:
			if v == 0 || v == 1 {
				d.SetBool(v == 1)
				return nil
			}
		}
	}
	if d.Kind() == reflect.Pointer && v != nil {
		to := reflect.New(d.Type().Elem())
		if err := assignTo(to.Elem(), v); err != nil {
			return err
		}
		d.Set(to)
		return nil
	}
	return fmt.Errorf("%T into %s", v, d.Type())
}
